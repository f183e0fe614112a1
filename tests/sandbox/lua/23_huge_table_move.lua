-- expect: used more than 0.2 s
-- limit: cpu
-- A move of a billion items that are not there.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    table.move({}, 1, 1000000000, 2)
end)
