-- expect: used more than 0.2 s
-- limit: cpu
-- The native looks at the items, not at what the metatable says of them.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = table.create(4000000, 0)
    for i = 1, 4000000 do list[i] = (i * 7919) % 4000037 end
    setmetatable(list, { __len = function() return 0 end })
    table.sort(list)
end)
