-- Lifecycles: which of the handlers that are due run in one cycle.

function heaviest_first(handlers, ctx)
    if ctx.name == "none" then
        return {}
    elseif ctx.name == "stranger" then
        return { "lihgt_fn" }
    elseif ctx.name == "raises" then
        error("no idea")
    end
    local sorted = {}
    for _, it in ipairs(handlers) do
        ctx.logger:info(("due: %s, a %s with %s retries"):format(it.id, it.kind, it.retries))
        table.insert(sorted, it)
    end
    table.sort(sorted, function(a, b) return (a.param or 0) > (b.param or 0) end)
    return sorted
end

kopf.set_default_lifecycle(kopf.lifecycles.all_at_once)
kopf.set_default_lifecycle()
kopf.set_default_lifecycle(heaviest_first)

local function not_parent(ctx) return ctx.name ~= "parent" end
function light_fn(ctx) end
function heavy_fn(ctx)
    if ctx.retry == 0 then
        kopf.retry("once more", 2)
    end
end
kopf.on_create("kopfexamples", { param = 1, when = not_parent }, light_fn)
kopf.on_create("kopfexamples", { param = 9, when = not_parent }, heavy_fn)

-- The last one, then the rest.
local function last(handlers) return handlers[#handlers].id end

function parent_fn(ctx)
    for i = 1, 2 do
        kopf.register({ id = "sub" .. i, param = i }, function() end)
    end
    kopf.execute()
    local fns = { x = function() end, y = function() end }
    kopf.execute({ fns = fns, lifecycle = kopf.lifecycles.one_by_one })
    fns = { p = function() end, q = function() end }
    kopf.execute({ fns = fns, lifecycle = last })
end
kopf.on_create("kopfexamples", { when = function(ctx) return ctx.name == "parent" end }, parent_fn)
