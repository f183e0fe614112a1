-- says: the result is larger than 1 MiB as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    ctx.memo.a = text
    return { ctx.memo, ctx.memo }
end)
