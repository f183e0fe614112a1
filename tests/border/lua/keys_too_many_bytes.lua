-- says: random.bytes: .*4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    random.bytes(1000000000) -- HERE
end)
