-- says: jwt.sign: `claims`: the token would be longer than 65536 bytes
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    jwt.sign({ a = string.rep("x", 100000) }, "x") -- HERE
end)
