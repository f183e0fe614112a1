-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in a resumed coroutine, caught and resumed again.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do
        coroutine.resume(coroutine.create(function() while true do end end))
    end
end)
