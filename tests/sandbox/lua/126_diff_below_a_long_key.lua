-- expect: ok
-- limit: none
-- Each of many changes has the long key above it in its path: all together are one change instead.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local old = {}
    for i = 1, 3000 do old["k" .. i] = i end
    local key = string.rep("x", 100000)
    local found = deep.diff({ [key] = old }, { [key] = {} })
    assert(#found == 1 and found[1].op == "change")
end)
