-- says: the memo is larger than 1 MiB as JSON \(settings.sandbox.result_size\): 1.7 MiB together
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    for turn = 1, 100 do
        ctx.memo["field" .. turn] = text -- HERE
    end
end)
