-- expect: used more than 0.2 s
-- limit: cpu
-- Loops in __add, __concat, __eq, __lt, __len, one after the other, each caught.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local spin = function() while true do end end
    local m = { __add = spin, __concat = spin, __eq = spin, __lt = spin, __len = spin, __unm = spin, __call = spin }
    local a, b = setmetatable({}, m), setmetatable({}, m)
    while true do
        pcall(function() return a + b end)
        pcall(function() return a .. b end)
        pcall(function() return a == b end)
        pcall(function() return a < b end)
        pcall(function() return #a end)
        pcall(function() return -a end)
        pcall(a)
    end
end)
