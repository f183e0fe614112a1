-- says: the patch is larger than 1 MiB as JSON .settings.sandbox.result_size.
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 100000)
    for i = 1, 20 do
        ctx.patch.status["field" .. i] = text -- HERE
    end
end)
