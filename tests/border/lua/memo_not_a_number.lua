-- says: memo.a.b: NaN and infinity are not valid in JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.memo.a = { b = 0 / 0 } -- HERE
end)
