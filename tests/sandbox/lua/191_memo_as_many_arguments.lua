-- expect: kopf.info: more than 16 arguments
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.text = string.rep("a", 50000)
    kopf.info(ctx.body, table.unpack(table.create(5000, ctx.memo)))
end)
