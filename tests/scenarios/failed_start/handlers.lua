-- A start that fails: all start-up handlers run to their end, and nothing else.

kopf.on_startup({ id = "bad" }, function(ctx)
    kopf.fail("no licence")
end)

kopf.on_startup({ id = "slow", backoff = 5 }, function(ctx)
    if ctx.retry == 0 then
        error("later")
    end
end)

kopf.on_cleanup(function(ctx)
    ctx.logger:info("never called")
end)

kopf.on_create("kopfexamples", function(ctx)
    ctx.logger:info("never called")
end)
