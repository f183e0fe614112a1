-- says: kopf.copy would have more than 100000 items
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local list = { 1 }
    while true do
        table.move(list, 1, #list, #list + 1)
        kopf.copy(list) -- HERE
    end
end)
