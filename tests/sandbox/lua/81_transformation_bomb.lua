-- expect: computed for more than|too many|larger than
-- limit: none
-- Transformations without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do ctx.patch.fns:append(function() end) end
end)
