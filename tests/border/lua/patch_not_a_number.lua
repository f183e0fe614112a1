-- says: patch.status.a\[[01]\]: NaN and infinity are not valid in JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.status.a = { 0 / 0 } -- HERE
end)
