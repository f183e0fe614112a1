-- says: kube.apply: `object`.spec.args: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.apply({ apiVersion = "kopf.dev/v1", kind = "KopfExample", metadata = { name = "z" }, spec = { args = function() end } }) -- HERE
end)
