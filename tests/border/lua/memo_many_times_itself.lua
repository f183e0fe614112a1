-- says: memo.b is larger than 1 MiB as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    ctx.memo.a = text
    local all = {}
    for i = 1, 20 do all[i] = ctx.memo end
    ctx.memo.b = all -- HERE
end)
