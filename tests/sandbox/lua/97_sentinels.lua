-- expect: ^E$
-- limit: none
-- Values that the host uses itself: forging its pending sentinel by a wrong yield.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local co = coroutine.create(function() kopf.sleep(0.001) end)
    local ok, value = coroutine.resume(co)
    for _, fake in { kopf.null, value or false, 1, "pending", {} } do
        pcall(coroutine.yield, fake)
    end
    error("E")
end)
