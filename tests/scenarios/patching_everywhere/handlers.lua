-- Patches of handlers other than those of changes.

function event_fn(ctx)
    ctx.patch.status.event = ctx.type
    ctx.patch.metadata.labels.unwanted = kopf.null
end

function daemon_fn(ctx)
    ctx.patch.status.daemon.attempt = ctx.retry
    ctx.patch.fns:append(function(body)
        body.spec.attempts = (body.spec.attempts or 0) + 1
    end)
    if ctx.retry == 0 then
        error(kopf.TemporaryError("the patch of a failed attempt is sent, too", 2))
    end
    ctx.stopped:wait()
end

function timer_fn(ctx)
    ctx.patch.status.timer = ctx.spec.attempts
end

kopf.on_event("kopfexamples", { labels = { unwanted = kopf.PRESENT } }, event_fn)
kopf.daemon("kopfexamples", { initial_delay = 1 }, daemon_fn)
kopf.timer("kopfexamples", { interval = 5, initial_delay = 2 }, timer_fn)
kopf.index("kopfexamples", { id = "table" }, function(ctx)
    ctx.patch.status.index = "is dropped"
end)
