-- says: the result would have more than 20000 items: 20001 up to the result.items\[2\].x
-- says: trace: hostile.lua:3: the result
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local list = {}
    for i = 1, 20000 do list[i] = i end
    return { items = { 1, { x = list } } }
end)
