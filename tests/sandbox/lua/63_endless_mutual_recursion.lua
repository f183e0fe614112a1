-- expect: nested deeper than 200 levels
-- limit: depth
-- Two that call each other.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local g
    local function f() return 1 + g() end
    function g() return 1 + f() end
    return f()
end)
