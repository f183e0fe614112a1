-- says: kopf.subhandler: the last argument must be the handler function, but it is not set
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.subhandler({ id = "s" }, nil) -- HERE
end)
