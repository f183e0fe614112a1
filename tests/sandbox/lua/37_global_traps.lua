-- expect: cannot change a protected metatable
-- limit: none
-- The globals of the script take no metatable.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    setmetatable(_G, { __index = function() while true do end end })
    return does_not_exist
end)
