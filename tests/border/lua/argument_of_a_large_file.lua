-- says: kube.copy_to: .*pods "p" not found
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.copy_to("p", "/x", string.rep("x", 4000000)) -- HERE
end)
