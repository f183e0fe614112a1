-- Objects that change or vanish while a handler works on them.

local function later(body)
    body.spec.list = body.spec.list or {}
    table.insert(body.spec.list, `of size {body.spec.size}`)
end

function create_fn(ctx)
    ctx.patch.status.seen = ctx.spec.size
    ctx.patch.fns:append(later)
    kopf.sleep(5)
    ctx.logger:info("done")
end

kopf.on_create("kopfexamples", create_fn)
