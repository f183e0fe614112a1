-- One of two scripts of one operator: they share memos, in whatever languages they are.

function first_startup(ctx)
    ctx.memo.operator = { by = "first" }
end

function first_create(ctx)
    ctx.memo.list = { 1, { name = ctx.name } }
    ctx.memo.map = { big = ctx.spec.big, empty = kopf.array(), text = "žluťoučký" }
    return "first"
end

function first_update(ctx)
    ctx.logger:info("second left " .. tostring(ctx.memo.list) .. " " .. tostring(ctx.memo.map))
end

kopf.on_startup(first_startup)
kopf.on_create("kopfexamples", first_create)
kopf.on_update("kopfexamples", first_update)
