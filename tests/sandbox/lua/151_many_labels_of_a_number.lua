-- expect: `labels`: more than 20
-- limit: none
-- A number with very many labels.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local labels = {}
    for i = 1, 1000 do labels["l" .. i] = "x" end
    metrics.gauge("it", 1, { labels = labels })
end)
