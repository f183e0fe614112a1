-- expect: patch.a would have more than 20000 items
-- limit: none
-- A patch that contains itself, twice.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.patch.a = {}
    while true do ctx.patch.a = { ctx.patch.a, ctx.patch.a } end
end)
