-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in a coroutine of the script.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    coroutine.wrap(function() while true do end end)()
end)
