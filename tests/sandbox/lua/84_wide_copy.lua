-- expect: larger than 1 MiB
-- limit: string
-- The endless table for kopf.copy.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { string.rep("x", 1000) }
    for _ = 1, 40 do t = { t, t } end
    return #kopf.copy(t)
end)
