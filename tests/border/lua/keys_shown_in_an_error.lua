-- says: jwt.sign: `key`: expected a string or bytes, got a map
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    jwt.sign({ a = 1 }, { pem = "TOP SECRET" }) -- HERE
end)
