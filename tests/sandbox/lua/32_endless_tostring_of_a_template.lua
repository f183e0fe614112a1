-- expect: used more than 0.2 s
-- limit: cpu
-- The text of a log line itself is such an object.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.logger:exception(setmetatable({}, { __tostring = function() while true do end end }))
end)
