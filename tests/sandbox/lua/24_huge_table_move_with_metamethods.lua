-- expect: used more than 0.2 s
-- limit: cpu
-- Each item calls back.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = setmetatable({}, { __index = function(_, i) return i end, __newindex = function() end })
    while true do
        table.move(t, 1, 1000000000, 2, t)
    end
end)
