-- expect: ^E$
-- limit: none
-- coroutine.close of what runs, and of the host's own coroutine.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    pcall(coroutine.close, coroutine.running())
    local outer = coroutine.running()
    coroutine.wrap(function() pcall(coroutine.close, outer) pcall(coroutine.resume, outer) end)()
    error("E")
end)
