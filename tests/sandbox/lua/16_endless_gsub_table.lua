-- expect: used more than 0.2 s
-- limit: cpu
-- A loop in the __index of the table given to gsub.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    string.gsub("abc", ".", setmetatable({}, { __index = function() while true do end end }))
end)
