-- says: patch.status.items would have more than 20000 items: 20001 up to patch.status.items
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local list = {}
    for i = 1, 20001 do list[i] = i end
    ctx.patch.status.items = list -- HERE
end)
