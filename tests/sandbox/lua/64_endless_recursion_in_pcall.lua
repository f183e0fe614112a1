-- expect: used more than 0.2 s
-- limit: cpu
-- Each level is protected.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function f() pcall(f) pcall(f) end
    f()
    error('E')
end)
