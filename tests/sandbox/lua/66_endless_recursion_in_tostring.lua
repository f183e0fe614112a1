-- expect: nested deeper than 200 levels
-- limit: depth
-- __tostring that asks for the text again.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t
    t = setmetatable({}, { __tostring = function() return tostring(t) end })
    return tostring(t)
end)
