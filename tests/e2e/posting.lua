-- Posts Kubernetes events about a created object: by hand, and through its logger.
kopf.on_startup(function(ctx)
    ctx.settings.posting.loggers = true
    ctx.settings.posting.level = 30
end)

kopf.on_create("kopfexamples", function(ctx)
    kopf.event(ctx.body, "Normal", "Greeted", "Hello, " .. ctx.name)
    kopf.event(ctx.body, "Normal", "Long", string.rep("ü", 2000))
    ctx.logger:warning("careful")
end)

kopf.on_cleanup(function(ctx)
    kopf.event({apiVersion = "v1", kind = "Namespace", metadata = {name = "default"}}, "Normal", "Left", "at the end")
end)
