-- expect: kopf.copy would have more than 100000 items
-- limit: none
-- A short text as JSON, and much memory: items have a bound of their own.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { 1 }
    for _ = 1, 17 do t = { t, t } end
    return #kopf.copy(t)
end)
