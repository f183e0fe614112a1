-- expect: .
-- limit: cpu
-- Transformations without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do ctx.patch.fns:append(function() end) end
end)
