-- says: kopf.copy is larger than 4 MiB as JSON .settings.sandbox.string_size.
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    ctx.memo.a = text
    kopf.copy({ ctx.memo, ctx.memo, ctx.memo, ctx.memo, ctx.memo }) -- HERE
end)
