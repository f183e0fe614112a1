-- says: ctx has no `sepc`; did you mean `ctx.spec`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return ctx.sepc.field -- HERE
end)
