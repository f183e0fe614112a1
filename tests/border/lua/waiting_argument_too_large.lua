-- says: kube.create: `object` is larger than 4 MiB as JSON \(settings.sandbox.string_size\): .* MiB up to `object`.memo
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    ctx.memo.a = text
    kube.create({ memo = { ctx.memo, ctx.memo, ctx.memo, ctx.memo, ctx.memo } }) -- HERE
end)
