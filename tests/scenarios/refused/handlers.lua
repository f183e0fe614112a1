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

-- What goes before a refused status is applied, and once.
function update_fn(ctx)
    if ctx.reason ~= "update" then
        return
    end
    ctx.patch.fns:append(grow)
    ctx.patch.fns:append(function(body)
        body.status.phase = kopf.array()
    end)
    ctx.conditions:set("Grown", true)
end

function delete_fn(ctx)
    ctx.patch.fns:append(paint)
end

function alone_fn(ctx)
    ctx.patch.fns:append(paint)
end

kopf.on_create("widgets", { labels = { alone = kopf.ABSENT } }, create_fn)
kopf.on_field("widgets", { field = "spec.color", labels = { alone = kopf.ABSENT } }, update_fn)
kopf.on_delete("widgets", { labels = { alone = kopf.ABSENT } }, delete_fn)
kopf.on_event("widgets", { labels = { alone = kopf.PRESENT } }, alone_fn)
