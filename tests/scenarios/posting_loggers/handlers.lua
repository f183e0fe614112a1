-- Each handler sleeps after it has logged, so that the order of lines is certain.

kopf.on_startup(function(ctx)
    ctx.settings.posting.loggers = true
    ctx.settings.posting.level = 20
    ctx.logger:warning("activities are about no object")
end)

kopf.on_event("kopfexamples", function(ctx)
    ctx.logger:error("lines of event handlers are never posted")
end)

kopf.on_create("kopfexamples", {id = "levels"}, function(ctx)
    ctx.logger:debug("debug")
    ctx.logger:info("info %d", 1)
    ctx.logger:warning("warning", {field = "extra"})
    ctx.logger:error("error")
    kopf.sleep(1)
end)

kopf.on_create("kopfexamples", {id = "failing", retries = 1}, function(ctx)
    kopf.sleep(1)
    kopf.fail("for good")
end)

kopf.timer("kopfexamples", {interval = 5, initial_delay = 3}, function(ctx)
    ctx.logger:info("tick")
end)
