-- The schema knows two colors, and green is none of them.

local function paint(body)
    body.spec.color = "green"
end

local function grow(body)
    body.spec.size = body.spec.size + 1
end

function create_fn(ctx)
    ctx.patch.status.phase = "Ready"
    ctx.conditions:set("Ready", true)
    ctx.patch.fns:append(paint)
    ctx.patch.fns:append(grow)
end

function delete_fn(ctx)
    ctx.patch.fns:append(paint)
end

function alone_fn(ctx)
    ctx.patch.fns:append(paint)
end

kopf.on_create("widgets", { labels = { alone = kopf.ABSENT } }, create_fn)
kopf.on_delete("widgets", { labels = { alone = kopf.ABSENT } }, delete_fn)
kopf.on_event("widgets", { labels = { alone = kopf.PRESENT } }, alone_fn)
