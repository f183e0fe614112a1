-- expect: ok
-- limit: none
-- A yield from the handler itself.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    coroutine.yield("hello")
    return "back"
end)
