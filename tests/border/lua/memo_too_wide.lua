-- says: memo.a would have more than 100000 items: 12000[46] up to memo.a.items.[23].
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local half = {}
    for i = 1, 60000 do half[i] = 0 end
    ctx.memo.half = half
    ctx.memo.a = { items = { half, 1, ctx.memo.half } } -- HERE
end)
