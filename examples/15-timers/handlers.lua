-- Functions that are called every few seconds for each object, once the object has been unchanged for a while.

function every_few_seconds_sync(ctx)
    ctx.logger:info(`Ping from a sync timer: field='{ctx.spec.field}'`)
end

function every_few_seconds_async(ctx)
    ctx.logger:info(`Ping from an async timer: field='{ctx.spec.field}'`)
end

kopf.timer("kopfexamples", { idle = 5, interval = 2 }, every_few_seconds_sync)
kopf.timer("kopfexamples", { idle = 10, interval = 4 }, every_few_seconds_async)
