-- says: kube.copy_to: `path`: expected the absolute path of a file
-- holds: 4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kube.copy_to("p", "/tmp/../etc/passwd", "root::0:0") -- HERE
end)
