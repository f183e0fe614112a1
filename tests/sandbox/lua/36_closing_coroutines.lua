-- expect: used more than 0.2 s
-- limit: cpu
-- Coroutines made and closed without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do
        local co = coroutine.create(function() coroutine.yield() end)
        coroutine.resume(co)
        coroutine.close(co)
    end
end)
