-- expect: used more than 0.2 s
-- limit: cpu
-- A loop around a protected loop: the error cannot be caught.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do pcall(function() while true do end end) end
end)
