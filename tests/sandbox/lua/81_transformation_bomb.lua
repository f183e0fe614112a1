-- expect: ctx.patch.fns would have more than 10000 functions
-- limit: none
-- Transformations without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do ctx.patch.fns:append(function() end) end
end)
