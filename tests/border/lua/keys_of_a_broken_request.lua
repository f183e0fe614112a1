-- says: crypto.certificate: `csr`: 
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    crypto.certificate({ ca = crypto.ca({}), csr = "-----BEGIN CERTIFICATE REQUEST-----\n" .. string.rep("MIIB", 1000) .. "\n-----END CERTIFICATE REQUEST-----\n" }) -- HERE
end)
