-- says: status would have more than 20000 items: 20001
kopf.reconcile("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local list = {}
    for i = 1, 20000 do list[i] = i end
    return { status = { list = list } }
end)
