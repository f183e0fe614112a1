-- expect: used more than 0.2 s
-- limit: cpu
-- The same through the logger.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.logger:exception("%s", setmetatable({}, { __tostring = function() while true do end end }))
end)
