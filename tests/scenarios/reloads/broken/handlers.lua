-- A mistake in its last handler.

kopf.on_startup({ id = "begin" }, function(ctx)
    ctx.logger:info("the first start")
end)

kopf.daemon("kopfexamples", { id = "edited", labels = { watch = "yes" }, initial_delay = 0.1 }, function(ctx)
    ctx.logger:info("begins")
    ctx.stopped:wait(1000)
    kopf.sleep(0.5)
    ctx.logger:info(`ends: {ctx.stopped.reason}, {ctx.stopped:is_set()}`)
end)

kopf.daemon("kopfexamples", { id = "kept", labels = { watch = "yes" }, initial_delay = 0.2 }, function(ctx)
    ctx.logger:info("begins, too")
    ctx.stopped:wait(1000)
    kopf.sleep(0.7)
    ctx.logger:info(`ends, too: {ctx.stopped.reason}`)
end)

kopf.on_create("kopfexamples", { id = "make" }, function(ctx)
    kopf.sleep(0.3)
    ctx.memo.attempts = (ctx.memo.attempts or 0) + 1
    kopf.subhandler({ id = "part" }, function() error("broken part") end)
    kopf.subhandler({ id = "done" }, function(sub) sub.logger:info("a part is done") end)
    ctx.logger:info(`attempt {ctx.memo.attempts}`)
end)

kopf.on_updated("kopfexamples", { id = "change" }, function(ctx)
    ctx.logger:info(`the first generation sees {ctx.spec.field}`)
end)

local function wanted(resource)
    return resource.plural == "kopfexamples"
end

kopf.on_create(wanted, { id = "chosen" }, function(ctx)
    ctx.logger:info(`chosen: {ctx.resource.plural}`)
end)
