-- expect: used more than 0.2 s
-- limit: cpu
-- The plain loop.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do end
end)
