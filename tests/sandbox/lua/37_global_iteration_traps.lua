-- expect: computed for more than 0.2 s
-- limit: cpu
-- Traps on the globals of the script.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    setmetatable(_G, { __index = function() while true do end end })
    return does_not_exist
end)
