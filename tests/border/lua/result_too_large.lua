-- says: the result is larger than 1 MiB as JSON \(settings.sandbox.result_size\): 1.9 MiB up to the result.items\[2\].x
-- says: trace: hostile.lua:3: the result
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 2000000)
    return { items = { 1, { x = text } } }
end)
