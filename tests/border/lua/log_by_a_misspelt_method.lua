-- says: there is no ctx.logger:inof; did you mean `ctx.logger:info`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.logger:inof("x") -- HERE
end)
