-- expect: patch.* larger than 64 KiB
-- limit: result
-- A patch of one large field.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.patch.status.text = string.rep("x", 1048576)
end)
