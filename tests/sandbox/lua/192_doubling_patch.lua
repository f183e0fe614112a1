-- expect: more than 20000 items
-- limit: none
-- A patch that contains itself, twice.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do
        ctx.patch.a = ctx.patch
        ctx.patch.b = ctx.patch
    end
end)
