-- says: kube.apply_crd: cannot patch .* is invalid
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local properties = {}
    for i = 1, 20000 do properties["k" .. i] = { type = "string" } end
    kube.apply_crd({ -- HERE
        apiVersion = "apiextensions.k8s.io/v1",
        kind = "CustomResourceDefinition",
        metadata = { name = "wides.example.com" },
        spec = { group = "example.com", versions = { { name = "v1", schema = properties } } },
    })
end)
