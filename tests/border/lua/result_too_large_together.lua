-- says: Handler 'hostile/d' .*deliver the result of handler 'hostile/d': the patch would be larger than 3 MiB: 3.6 MiB
-- holds: 24 MiB
local function long()
    return string.rep("x", 950000)
end

kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local fns = { a = long, b = long, c = long, d = long }
    kopf.execute({ fns = fns, lifecycle = kopf.lifecycles.all_at_once })
end)
