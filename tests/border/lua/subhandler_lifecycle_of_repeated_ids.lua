-- says: Creation is processed: 1 succeeded; 0 failed
-- holds: 16 MiB
kopf.set_default_lifecycle(function(handlers, ctx)
    local ids = {}
    for i = 1, 20000 - #handlers do ids[i] = handlers[#handlers].id end
    for i = 1, #handlers do ids[#ids + 1] = handlers[i].id end
    return ids
end)
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 1000 do
        kopf.subhandler({ id = "s" .. i }, function() end)
    end
end)
