-- Results that are whole objects are hardly meant: each handler is warned of once.

local function small(ctx)
    return { apiVersion = ctx.body.apiVersion, kind = ctx.body.kind, metadata = { uid = "u" } }
end

function whole(ctx) return small(ctx) end
function part(ctx) return { kind = ctx.body.kind, uid = "u" } end
function other(ctx) return small(ctx) end

kopf.on_create("kopfexamples", whole)
kopf.on_create("kopfexamples", part)
kopf.on_update("kopfexamples", other)
