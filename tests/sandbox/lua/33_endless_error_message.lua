-- expect: used more than 0.2 s
-- limit: cpu
-- kopf.TemporaryError asks for the text of its message.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    error(kopf.TemporaryError(setmetatable({}, { __tostring = function() while true do end end })))
end)
