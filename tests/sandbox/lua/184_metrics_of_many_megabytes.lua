-- expect: the metrics of this script would take more than 1 MiB on the page
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local buckets, labels = {}, {}
    for i = 1, 50 do buckets[i] = i end
    for i = 1, 19 do labels["label_" .. i] = string.rep("a", 200) end
    for i = 1, 900 do
        labels.number = i
        metrics.histogram("long", 1, { labels = labels, buckets = buckets })
    end
end)
