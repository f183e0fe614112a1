-- Two daemons for each object: functions that run for as long as the object exists.

-- Fails three times, to show how daemons are retried.
local function fail_at_first(ctx)
    if ctx.retry < 3 then
        ctx.patch.status.message = `Failed {ctx.retry + 1} times.`
        error(kopf.TemporaryError("Simulated failure.", 1))
    end
end

-- Checks its stop flag, and exits by itself.
function background_sync(ctx)
    fail_at_first(ctx)
    for _ = 1, 6 do
        -- `ctx.spec` is always that of the current object.
        print(`=> Ping from a sync daemon: field='{ctx.spec.field}', retry={ctx.retry}`)
        if ctx.stopped:wait(5) then
            break
        end
    end
    ctx.patch.status.message = "Accompanying is finished."
end

-- Ignores the stop flag, and is cancelled while it sleeps.
function background_async(ctx)
    fail_at_first(ctx)
    while true do
        print(`=> Ping from an async daemon: field='{ctx.spec.field}'`)
        kopf.sleep(5)
    end
end

kopf.daemon("kopfexamples", { backoff = 3 }, background_sync)
kopf.daemon("kopfexamples", {
    annotations = { someannotation = "somevalue" },
    backoff = 3,
    cancellation_backoff = 1.0,
    cancellation_timeout = 0.5,
}, background_async)
