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

-- Its patch has nothing but the function, so the version it is about is that of the event.
function event_fn(ctx)
    if ctx.type == "ADDED" then
        ctx.patch.fns:append(function(body)
            body.spec.double = body.spec.size * 2
        end)
        kopf.sleep(5)
    end
end

kopf.on_create("kopfexamples", { labels = { raced = kopf.ABSENT } }, create_fn)
kopf.on_event("kopfexamples", { labels = { raced = kopf.PRESENT } }, event_fn)
