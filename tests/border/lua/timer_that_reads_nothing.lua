-- says: ctx has no `nmae`; did you mean `ctx.name`
kopf.timer("kopfexamples", { id = "hostile", labels = { role = "hostile" }, interval = 1 }, function(ctx)
    return ctx.nmae -- HERE
end)
