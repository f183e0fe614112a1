-- says: hash.bcrypt: `password`: expected at most 72 bytes
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    hash.bcrypt(string.rep("x", 1000000)) -- HERE
end)
