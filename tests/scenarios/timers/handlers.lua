-- Timers of all kinds; what they return goes to the status.

function every(ctx)
    ctx.logger:info(`field: {ctx.spec.field}, retry: {ctx.retry}`)
    if ctx.spec.field == "b" and ctx.retry == 0 then
        error("an accident")
    end
    return ctx.spec.field
end

function sharp(ctx)
    ctx.logger:info("begins")
    kopf.sleep(3)
end

function idle(ctx)
    ctx.logger:info(`idle for a while, stopped: {ctx.stopped()}`)
end

local function delay(ctx)
    return ctx.spec.delay or "no delay yet"
end

function late(ctx)
    ctx.logger:info("late")
end

kopf.timer("kopfexamples", { interval = 10, initial_delay = 0.1, backoff = 1 }, every)
kopf.timer("kopfexamples", { interval = 10, sharp = true, initial_delay = 0.5 }, sharp)
kopf.timer("kopfexamples", { idle = 8.2 }, idle)
kopf.timer("kopfexamples", { labels = { late = kopf.PRESENT }, interval = 20, initial_delay = delay, backoff = 5 }, late)
