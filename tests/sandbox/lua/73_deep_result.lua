-- expect: nested deeper than 128
-- limit: none
-- A result of a thousand levels.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for _ = 1, 1000 do t = { t } end
    return t
end)
