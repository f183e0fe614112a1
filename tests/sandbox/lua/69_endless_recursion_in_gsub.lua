-- expect: nested deeper than 200 levels
-- limit: depth
-- Callbacks in callbacks.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function f() return (string.gsub("x", "x", f)) end
    return f()
end)
