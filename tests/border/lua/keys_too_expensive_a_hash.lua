-- says: hash.check: `hash`: expected at most 64 MiB of memory
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    hash.check("x", "$argon2id$v=19$m=4194304,t=1,p=1$YWFhYWFhYWE$YWFhYWFhYWFhYWFhYWFhYQ") -- HERE
end)
