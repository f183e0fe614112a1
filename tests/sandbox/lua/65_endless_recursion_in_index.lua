-- expect: nested deeper than 200 levels
-- limit: depth
-- __index that reads again.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t
    t = setmetatable({}, { __index = function(_, k) return t[k + 1] end })
    return t[1]
end)
