-- says: the id 'hostile/x{52}…' is longer than 512 bytes: 513
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.subhandler({ id = string.rep("x", 505) }, function() end) -- HERE
end)
