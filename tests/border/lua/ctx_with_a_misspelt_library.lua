-- says: there is no kube.lits; did you mean `kube.list`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.lits("pods") -- HERE
end)
