-- The options of handlers of the operator's own start and end.

kopf.on_startup({ id = "first", param = { step = 1 }, retries = 3, backoff = "2s" }, function(ctx)
    ctx.logger:info(ctx.activity .. ", attempt " .. ctx.retry .. ", " .. tostring(ctx.param))
    if ctx.retry < 2 then
        error("not yet")
    end
end)

kopf.on_startup({ id = "second", errors = "ignored" }, function(ctx)
    error("never mind")
end)

kopf.on_startup({ id = "third", param = "x" }, function(ctx)
    ctx.logger:info(ctx.param)
end)

kopf.on_cleanup({ id = "limited", retries = 2, backoff = 1 }, function(ctx)
    error("again and again")
end)

kopf.on_cleanup({ id = "strict", errors = "permanent" }, function(ctx)
    error("at once")
end)

kopf.on_cleanup({ id = "slow", timeout = 5 }, function(ctx)
    kopf.sleep(60)
end)

kopf.on_cleanup({ id = "patient", timeout = 9, backoff = 2 }, function(ctx)
    error("until its time is up")
end)

kopf.on_cleanup({ id = "delayed" }, function(ctx)
    if ctx.retry == 0 then
        kopf.retry("wait", 4)
    end
end)
