-- expect: nested deeper than 200 levels
-- limit: depth
-- A function that calls itself.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function f() return 1 + f() end
    return f()
end)
