-- expect: ^[{][}]$
-- limit: none
-- An error object whose text is never ready: the host asks for it.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    error(setmetatable({}, { __tostring = function() while true do end end }))
end)
