-- says: the result is larger than 1 MiB as JSON \(settings.sandbox.result_size\): 1.9 MiB up to the result.a.b
kopf.index("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return { a = { b = string.rep("x", 2000000) } }
end)
