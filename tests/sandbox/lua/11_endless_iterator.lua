-- expect: used more than 0.2 s
-- limit: cpu
-- An iterator that never ends, by __iter.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _ in setmetatable({}, { __iter = function() return function() return 1 end end }) do end
end)
