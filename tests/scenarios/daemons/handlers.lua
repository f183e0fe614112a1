-- One that looks whether it must stop, one that needs several attempts, one that must be cancelled.

function watcher(ctx)
    ctx.logger:info(`watching {ctx.name}: {ctx.spec.field}`)
    while not ctx.stopped:wait(5) do
        ctx.logger:info(`still watching: {ctx.spec.field}`)
    end
    ctx.logger:info(`must stop: {ctx.stopped.reason}`)
end

local function delay(ctx)
    return ctx.spec.delay
end

function worker(ctx)
    ctx.patch.status.tried = ctx.retry
    if ctx.retry < 2 then
        error(kopf.TemporaryError("not yet", 1.5))
    end
    return { field = ctx.spec.field }
end

function deaf(ctx)
    kopf.sleep(1000)
end

kopf.daemon("kopfexamples", { labels = { watch = "yes" }, initial_delay = 0.1 }, watcher)
kopf.daemon("kopfexamples", { initial_delay = delay }, worker)
kopf.daemon("kopfexamples", { initial_delay = 0.2, cancellation_backoff = 1, cancellation_timeout = "1s" }, deaf)
