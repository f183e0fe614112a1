-- Limits of handlers: error modes, attempts, time, pauses.

function fails(ctx)
    error("attempt " .. ctx.retry)
end

function retries_forever(ctx)
    kopf.retry("attempt " .. ctx.retry, 4)
end

kopf.on_create("kopfexamples", { id = "ignored", errors = "ignored" }, fails)
kopf.on_create("kopfexamples", { id = "permanent", errors = "permanent" }, fails)
kopf.on_create("kopfexamples", { id = "temporary", errors = "temporary", backoff = 2, retries = 3 }, fails)
kopf.on_create("kopfexamples", { id = "mode", errors = kopf.ErrorsMode.IGNORED }, fails)
kopf.on_create("kopfexamples", { id = "retries", retries = 2 }, retries_forever)
kopf.on_create("kopfexamples", { id = "timeout", timeout = 10 }, retries_forever)
kopf.on_create("kopfexamples", { id = "backoff-text", backoff = "1500ms", retries = 2 }, fails)
kopf.on_create("kopfexamples", { id = "timeout-text", timeout = "1m", backoff = "0.5m" }, fails)
kopf.on_create("kopfexamples", { id = "backoff-default", retries = 2 }, fails)
