-- says: Handler 'hostile/c' .*deliver the result of handler 'hostile/c': the patch would have more than 20000 items: 27
-- holds: 8 MiB
local function wide()
    local list = {}
    for i = 1, 9000 do list[i] = i end
    return { list = list }
end

kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.execute({ fns = { a = wide, b = wide, c = wide }, lifecycle = kopf.lifecycles.all_at_once })
end)
