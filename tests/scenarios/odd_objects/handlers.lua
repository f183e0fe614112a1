-- Objects that are not as one expects: parts missing, or of another type.

local function count(map)
    local n = 0
    for _ in pairs(map) do
        n = n + 1
    end
    return n
end

function create_fn(ctx)
    ctx.logger:info("spec " .. tostring(ctx.spec) .. " of " .. count(ctx.spec))
    ctx.logger:info("status " .. tostring(ctx.status) .. " of " .. count(ctx.status))
    ctx.logger:info("labels " .. count(ctx.labels) .. " annotations " .. count(ctx.annotations))
    ctx.logger:info("raw spec " .. tostring(ctx.body.spec))
    ctx.logger:info("got " .. tostring(kopf.get(ctx.body, "spec.field", "nothing")))
    return { seen = true }
end

kopf.on_create("kopfexamples", create_fn)
