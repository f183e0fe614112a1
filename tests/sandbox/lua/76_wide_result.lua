-- expect: the result is larger than 64 KiB
-- limit: result
-- Small in memory, endless when it is written out: each level has the next one twice.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { 1 }
    for _ = 1, 40 do t = { t, t } end
    return t
end)
