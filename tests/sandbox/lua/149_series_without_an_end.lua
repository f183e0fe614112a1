-- expect: already has 1000 series
-- limit: none
-- Numbers by the names of objects.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for i = 1, 2000 do metrics.counter("it", 1, { labels = { name = i } }) end
end)
