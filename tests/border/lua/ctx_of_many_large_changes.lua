-- says: Updating is processed: 40 succeeded; 0 failed
-- holds: 48 MiB
kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
for i = 1, 40 do
    kopf.on_update("kopfexamples", { id = "hostile" .. i, field = "spec.large", labels = { role = "hostile" } }, function(ctx) end)
end
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local large = {}
    for i = 1, 4000 do large["key" .. i] = { "a" } end
    ctx.patch.spec = { large = large }
end)
