-- expect: nested deeper than 200 levels
-- limit: depth
-- Comparators in comparators.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function f()
        table.sort({ 2, 1 }, f)
        return true
    end
    f()
end)
