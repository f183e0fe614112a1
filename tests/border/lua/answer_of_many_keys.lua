-- says: the result would have more than 20000 items: (20001|4500\d) up to the result.data.
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local data = {}
    for i = 1, 45000 do data["k" .. i] = "v" end
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = ctx.name }, data = data })
    assert(#kube.list("configmaps") > 0)
    return kube.get("configmaps", { name = ctx.name })
end)
