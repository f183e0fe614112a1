-- says: kopf.info: `reason` has 200 bytes: the cluster takes up to 128
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.info(ctx.body, string.rep("R", 200), "m") -- HERE
end)
