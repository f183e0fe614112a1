-- expect: ok
-- limit: none
-- Handles that nobody keeps do not count.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local key = string.rep("a", 1000000)
    for i = 1, 400 do local level = ctx.patch[key .. i] end
end)
