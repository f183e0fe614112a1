-- expect: used more than 0.2 s
-- limit: cpu
-- Metamethods that loop, on arguments of each of the host's functions.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local spin = function() while true do end end
    local trap = setmetatable({}, { __index = spin, __newindex = spin, __len = spin, __iter = spin, __eq = spin, __tostring = spin, __call = spin })
    for name, f in kopf do
        if type(f) == "function" and name ~= "sleep" then
            pcall(f, trap, trap, trap)
            pcall(f, ctx.body, trap)
        end
    end
    pcall(kopf.get, trap, trap)
    while true do pcall(kopf.get, trap, "a.b") end
end)
