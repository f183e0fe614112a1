-- expect: the result would have more than 20000 items
-- limit: none
-- Small in memory, endless when it is written out: each level has the next one twice.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { 1 }
    for _ = 1, 40 do t = { t, t } end
    return t
end)
