-- What becomes of daemons and timers that fail, that are not wanted any more, and that do not listen.

local function named(name)
    return function(ctx) return ctx.name == name end
end

function once(ctx)
    ctx.logger:info("once")
    return "done"
end

function broken(ctx)
    error("an accident")
end

function careless(ctx)
    error("whatever")
end

function hopeless(ctx)
    ctx.patch.status.hopeless = ctx.retry
    kopf.fail("never")
end

kopf.timer("kopfexamples", { when = named("errs"), initial_delay = 0.1 }, once)
kopf.daemon("kopfexamples", { when = named("errs"), initial_delay = 0.2, backoff = 2, retries = 3 }, broken)
kopf.daemon("kopfexamples", { when = named("errs"), initial_delay = 0.3, errors = "ignored" }, careless)
kopf.daemon("kopfexamples", { when = named("errs"), initial_delay = 0.4 }, hopeless)

function ticking(ctx)
    ctx.logger:info(`tick: retry {ctx.retry}, stopped {ctx.stopped()}`)
    if ctx.spec.fail == "now" then
        kopf.fail("this time")
    elseif ctx.spec.fail == "later" and ctx.retry == 0 then
        kopf.retry("in a moment", 1.5)
    end
end

kopf.timer("kopfexamples", { labels = { tick = "yes" }, interval = 5, initial_delay = "500ms" }, ticking)

function waiting(ctx)
    ctx.logger:info("waits")
    if ctx.stopped:wait(100) then
        ctx.logger:info(`must stop: {ctx.stopped.reason}`)
    end
end

function deaf(ctx)
    ctx.logger:info("hears nothing")
    kopf.sleep(1000)
end

kopf.timer("kopfexamples", { labels = { wait = "yes" }, interval = 5, initial_delay = 0.2 }, waiting)
kopf.daemon("kopfexamples", { when = named("waits"), initial_delay = 0.1, cancellation_timeout = 0 }, deaf)
