-- says: the result is larger than 1 MiB as JSON
kopf.timer("kopfexamples", { id = "hostile", labels = { role = "hostile" }, interval = 1 }, function(ctx)
    return string.rep("x", 2000000)
end)
