-- says: memo.spec is larger than 1 MiB as JSON \(settings.sandbox.result_size\): 1.9 MiB up to memo.spec.items\[3\].x
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 2000000)
    ctx.memo.spec = { items = { 1, 2, { x = text } } } -- HERE
end)
