-- says: hash.argon2: `memory`, `iterations`: expected at most 1048576 KiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    hash.argon2("x", { memory = 1024, iterations = 2000000 }) -- HERE
end)
