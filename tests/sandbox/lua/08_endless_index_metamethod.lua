-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in __index.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = setmetatable({}, { __index = function() while true do end end })
    return t.x
end)
