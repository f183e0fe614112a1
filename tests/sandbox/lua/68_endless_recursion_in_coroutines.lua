-- expect: nested deeper than 200 levels
-- limit: depth
-- Coroutines in coroutines.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function f() return coroutine.wrap(f)() end
    return f()
end)
