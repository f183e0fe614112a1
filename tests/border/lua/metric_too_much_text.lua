-- says: metrics.gauge: .*1 MiB
-- holds: 12 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 200)
    for i = 1, 999 do
        local labels = { n = tostring(i) }
        for n = 1, 19 do labels["l" .. n] = text end
        metrics.gauge("x", 1, { labels = labels }) -- HERE
    end
end)
