-- expect: ^E$
-- limit: none
-- Handing the handler's coroutine and functions to callbacks of the host.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function again() return again end
    assert(not pcall(function() ctx.memo.f = again end), "a memo takes no functions")
    assert(not pcall(function() ctx.memo.co = coroutine.running() end), "a memo takes no coroutines")
    pcall(coroutine.resume, coroutine.running())
    for _ = 1, 100 do pcall(lists.filter, { 1 }, again) end
    pcall(kopf.values, ctx.memo)
    error("E")
end)
