-- says: memo.spec.items\[3\].x: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.memo.spec = { items = { 1, 2, { x = function() end } } } -- HERE
end)
