-- says: the result would have more than 20000 items: (20001|3000\d) up to the result.
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local data = {}
    for i = 1, 30000 do data["k" .. i] = "dg==" end
    kube.create({ apiVersion = "v1", kind = "Secret", metadata = { name = ctx.name }, data = data })
    assert(kube.secret(ctx.name).k1 == "v")
    return kube.secret(ctx.name)
end)
