-- says: kopf.info: `reason` has 200 bytes: the API server accepts at most 128
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.info(ctx.body, string.rep("R", 200), "m") -- HERE
end)
