-- says: kube.run: `files`: expected at most 100, got 5000
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local files = {}
    for i = 1, 5000 do files["/f" .. i] = "x" end
    kube.run("i", { "x" }, { files = files }) -- HERE
end)
