-- says: the result would have more than 20000 items: (20001|4500\d) up to the result.object.data.
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local data = {}
    for i = 1, 45000 do data["k" .. i] = "v" end
    local map = kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = ctx.name }, data = data })
    kube.wait(map, function(it) return it.data.k1 == "v" end)
    for event in kube.watch("configmaps", { name = ctx.name }) do
        return event
    end
end)
