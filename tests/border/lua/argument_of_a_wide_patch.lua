-- says: kube.patch: .*configmaps "missing" not found
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local data = {}
    for i = 1, 45000 do data["k" .. i] = "v" end
    local map = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = ctx.name }, data = data }
    kube.apply(map)
    kube.patch(map, { data = data })
    map.metadata.name = "missing"
    kube.patch(map, { data = data }) -- HERE
end)
