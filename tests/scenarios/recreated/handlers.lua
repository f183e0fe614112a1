-- What is remembered of an object ends with it; what the operator keeps is shared.

function startup_fn(ctx)
    ctx.memo.counter = 0
    ctx.memo.common = { names = kopf.array() }
end

function create_fn(ctx)
    ctx.memo.counter += 1
    table.insert(ctx.memo.common.names, `{ctx.name} {ctx.uid:sub(-1)}`)
    ctx.logger:info(`counter {ctx.memo.counter}, shared {ctx.memo.common.names}, own {ctx.memo.own or "nothing"}`)
    ctx.memo.own = "something"
    if ctx.name == "two" then
        ctx.memo.common = { names = { "its own" } }
    end
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_update("kopfexamples", function(ctx)
    ctx.logger:info(`counter {ctx.memo.counter}, common {ctx.memo.common.names}, own {ctx.memo.own}`)
end)
kopf.on_cleanup(function(ctx)
    ctx.logger:info(`of the operator: {ctx.memo}`)
end)
