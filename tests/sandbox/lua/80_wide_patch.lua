-- expect: patch.status.t would have more than 20000 items
-- limit: none
-- The endless table in a patch.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { 1 }
    for _ = 1, 40 do t = { t, t } end
    ctx.patch.status.t = t
end)
