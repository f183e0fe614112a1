-- expect: patch.* larger than 1 MiB
-- limit: result
-- A patch of one large field.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.patch.status.text = string.rep("x", 8000000)
end)
