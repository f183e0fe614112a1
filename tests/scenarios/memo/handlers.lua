-- What handlers of one object remember for each other.

function startup_fn(ctx)
    ctx.memo.settings = { greeting = "hello" }
    ctx.memo.count = 100
end

function event_fn(ctx)
    ctx.memo.events = (ctx.memo.events or 0) + 1
end

function create_fn(ctx)
    ctx.memo.count = ctx.memo.count + 1
    ctx.memo.own = { list = { 1, 2 }, deep = { er = { name = ctx.name } } }
    ctx.memo.own.added = "later"
    table.insert(ctx.memo.own.list, 3)
    ctx.memo.own.list[1] = "first"
    ctx.memo["dotted.key/slash"] = true
    ctx.logger:info("memo " .. tostring(ctx.memo))
    ctx.logger:info("absent " .. tostring(ctx.memo.absent == nil))
    if ctx.retry == 0 then
        kopf.retry("again", 1)
    end
end

function update_fn(ctx)
    ctx.logger:info("greeting " .. ctx.memo.settings.greeting)
    ctx.logger:info("deep " .. ctx.memo.own.deep.er.name .. " " .. #ctx.memo.own.list .. " " .. ctx.memo.own.list[1])
    for index, item in ipairs(ctx.memo.own.list) do
        ctx.logger:info("item " .. index .. " " .. item)
    end
    ctx.logger:info("got " .. tostring(kopf.get(ctx.memo, "own.deep.er.name")) .. " " .. tostring(kopf.get(ctx.memo, "own.no.er", "default")))
    ctx.memo.own.deep = nil
    ctx.memo.own.added = nil
    ctx.memo.copied = kopf.copy(ctx.memo.own)
    ctx.memo.read = ctx.spec
    ctx.memo.events = nil
    ctx.logger:info("memo " .. tostring(ctx.memo))
    return ctx.memo.own
end

function cleanup_fn(ctx)
    ctx.logger:info("memo " .. tostring(ctx.memo))
end

kopf.on_startup(startup_fn)
kopf.on_cleanup(cleanup_fn)
kopf.on_event("kopfexamples", event_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_update("kopfexamples", update_fn)
