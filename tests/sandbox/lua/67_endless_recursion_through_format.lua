-- expect: nested deeper than 200 levels
-- limit: depth
-- The same through the host's functions.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t
    t = setmetatable({}, { __tostring = function() return string.format("%s", t) end })
    return string.format("%s", t)
end)
