-- expect: used more than 0.2 s
-- limit: cpu
-- The error handler loops too.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    xpcall(function() error('x') end, function() while true do end end)
    return 'caught'
end)
