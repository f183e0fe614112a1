-- says: kube.copy_from: `path`: expected the absolute path of a file
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.copy_from("p", "/" .. string.rep("x", 1000000)) -- HERE
end)
