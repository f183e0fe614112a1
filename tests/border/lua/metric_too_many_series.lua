-- says: metrics.counter: .*1000
-- holds: 4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 1001 do
        metrics.counter("x", { labels = { a = tostring(i) } }) -- HERE
    end
end)
