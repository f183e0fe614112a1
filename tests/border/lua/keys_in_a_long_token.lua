-- says: jwt.verify: `token`: expected at most 65536 bytes
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    jwt.verify(string.rep("a.", 1000000), "x") -- HERE
end)
