-- expect: nested deeper than 128 levels
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local level = ctx.patch.status
    for i = 1, 3000 do level = level.x end
    level.y = 1
end)
