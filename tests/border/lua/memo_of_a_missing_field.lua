-- says: arithmetic .add. on nil and number
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.memo.count += 1 -- HERE
end)
