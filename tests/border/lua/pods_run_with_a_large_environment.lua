-- says: kube.run: the program, `env` and `files`: expected at most 1 MiB as JSON, got 1.9 MiB
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local env = {}
    for i = 1, 1000 do env["V" .. i] = string.rep("x", 2000) end
    kube.run("i", { "x" }, { env = env }) -- HERE
end)
