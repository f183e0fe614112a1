-- expect: used more than 0.2 s
-- limit: cpu
-- A __tostring that loops, called by print.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    print(setmetatable({}, { __tostring = function() while true do end end }))
end)
