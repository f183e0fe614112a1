-- says: ctx.spec cannot be assigned: change the object through ctx.patch, store data in ctx.memo
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.spec = {} -- HERE
end)
