-- says: kopf.copy would have more than 100000 items
local function pushed(list)
    for i = 1, 100001 do
        list[i] = i
    end
    return kopf.copy(list) -- HERE
end
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return pushed({})
end)
