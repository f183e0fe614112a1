-- says: crypto.fernet_decrypt: `token`: is not a Fernet token
-- holds: 12 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    crypto.fernet_decrypt(crypto.fernet_key(), string.rep("gAAA", 500000)) -- HERE
end)
