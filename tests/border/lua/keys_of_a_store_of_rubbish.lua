-- says: crypto.pkcs12: `cert`: expected 1 to 64 certificates in PEM
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    crypto.pkcs12(string.rep("x", 1000000), "x") -- HERE
end)
