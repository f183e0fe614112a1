-- says: crypto.parse: `pem`: expected a certificate in PEM
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    crypto.parse(string.rep("-----BEGIN X-----\nAAAA\n-----END X-----\n", 20000)) -- HERE
end)
