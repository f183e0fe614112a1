-- Handlers that wait long for their next attempt.

function create_fn(ctx)
    ctx.logger:info(`attempt {ctx.retry}, {math.floor(ctx.runtime)} s after the first`)
    if ctx.retry == 0 then
        kopf.retry("in a quarter of an hour", "15m")
    elseif ctx.retry == 1 then
        kopf.retry("in ten seconds", 10)
    elseif ctx.retry == 2 then
        kopf.retry("at once", 0)
    end
end

kopf.on_create("kopfexamples", create_fn)
