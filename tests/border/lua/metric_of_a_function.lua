-- says: metrics.counter: .*a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    metrics.counter("x", { labels = { a = function() end } }) -- HERE
end)
