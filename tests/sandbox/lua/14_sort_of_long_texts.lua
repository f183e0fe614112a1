-- expect: used more than 0.2 s
-- limit: cpu
-- Each comparison of the default order looks at a long text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local a, b = string.rep("x", 900000) .. "a", string.rep("x", 900000) .. "b"
    local t = {}
    for i = 1, 100000 do t[i] = i % 2 == 0 and a or b end
    while true do
        table.sort(t)
        table.move(t, 1, 50000, 50001)
    end
end)
