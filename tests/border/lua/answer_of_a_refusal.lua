-- says: kube.create: cannot create .*(404|400|422)|kube.create: .*needs|kube.create: 
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.create({ apiVersion = "v9", kind = "Nothing", metadata = { name = "x" } }) -- HERE
end)
