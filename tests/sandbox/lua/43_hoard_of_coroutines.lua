-- expect: needs more than 16 MiB
-- limit: memory
-- Coroutines that wait for ever.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for i = 1, 1e9 do
        t[i] = coroutine.create(function() coroutine.yield() end)
        coroutine.resume(t[i])
    end
end)
