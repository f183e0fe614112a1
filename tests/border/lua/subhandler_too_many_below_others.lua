-- says: this handler has more than 1000 sub-handlers, including those below them
-- holds: 16 MiB
kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 40 do
        kopf.subhandler({ id = "s" .. i }, function()
            for j = 1, 40 do
                kopf.subhandler({ id = "s" .. j }, function() end)
            end
        end)
    end
end)
