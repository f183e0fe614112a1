-- says: Creation is processed: 1 succeeded; 0 failed
-- holds: 16 MiB
kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 1000 do
        kopf.subhandler({ id = "s" .. i }, function() end)
    end
end)
