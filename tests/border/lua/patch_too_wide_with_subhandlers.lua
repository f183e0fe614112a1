-- says: the patch would have more than 20000 items: 20005 together
-- holds: 8 MiB
local function wide(count)
    local list = {}
    for i = 1, count do list[i] = i end
    return list
end

kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.status.first = 1
    kopf.execute({
        fns = {
            a = function(sub) sub.patch.status.a = wide(9000) end,
            b = function(sub) sub.patch.status.b = wide(9000) end,
        },
        lifecycle = kopf.lifecycles.all_at_once,
    })
    ctx.patch.status.last = wide(2000) -- HERE
end)
