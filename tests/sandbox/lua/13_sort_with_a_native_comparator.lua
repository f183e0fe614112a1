-- expect: used more than 0.2 s
-- limit: cpu
-- A native comparator is never interrupted by itself.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = table.create(300000, 1)
    while true do
        pcall(table.sort, t, rawequal)
    end
end)
