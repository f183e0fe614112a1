-- expect: waiting is not possible
-- limit: none
-- Waiting from all the odd places.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    pcall(table.sort, { 2, 1 }, function() kopf.sleep(0.001) end)
    pcall(string.gsub, "x", "x", function() kopf.sleep(0.001) end)
    pcall(function() return setmetatable({}, { __index = function() kopf.sleep(0.001) end }).x end)
    pcall(tostring, setmetatable({}, { __tostring = function() kopf.sleep(0.001) end }))
    for _ in setmetatable({}, { __iter = function() kopf.sleep(0.001) return next, {} end }) do end
    xpcall(function() error("x") end, function() kopf.sleep(0.001) end)
    pcall(coroutine.yield, 1, 2, 3)
    error("E")
end)
