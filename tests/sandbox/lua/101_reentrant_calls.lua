-- expect: ^E$
-- limit: none
-- Handing the handler's coroutine and functions to callbacks of the host.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.f = function() return ctx.memo.f end
    ctx.memo.co = coroutine.running()
    pcall(coroutine.resume, ctx.memo.co)
    for _ = 1, 100 do pcall(ctx.memo.f) end
    pcall(kopf.values, ctx.memo)
    error("E")
end)
