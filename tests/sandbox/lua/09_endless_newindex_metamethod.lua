-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in __newindex.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = setmetatable({}, { __newindex = function() while true do end end })
    t.x = 1
end)
