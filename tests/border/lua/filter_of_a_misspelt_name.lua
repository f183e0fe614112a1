-- says: ctx has no `sepc`; did you mean `ctx.spec`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" }, when = function(ctx)
    return ctx.sepc.x -- HERE
end }, function() end)
