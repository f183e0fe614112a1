-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in the comparator of table.sort.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    table.sort({ 3, 2, 1 }, function() while true do end end)
end)
