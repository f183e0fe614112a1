-- expect: ok
-- limit: none
-- Metamethods of a result are not asked.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local spin = function() while true do end end
    return setmetatable({ a = 1 }, { __index = spin, __iter = spin, __len = spin, __tostring = spin, __call = spin, __eq = spin })
end)
