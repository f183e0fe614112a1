-- expect: `backoffs`: 90 pauses, more than 20
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    kopf.info(ctx.body, "Reason", "message", { backoffs = table.create(90, 1) })
end)
