-- expect: contains itself
-- limit: none
-- Cycles for each of the host's functions.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    t.t = t
    for _, f in { kopf.copy, kopf.array, kopf.adopt, kopf.label, kopf.info, kopf.sleep, tostring } do
        pcall(f, t, t, t)
    end
    ctx.memo.t = t
end)
