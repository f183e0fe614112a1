-- expect: kopf.get: the path has more than 1000 steps
-- limit: none
-- Paths of a million steps for kopf.get.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local path = string.rep("a.", 400000) .. "a"
    for _ = 1, 1000 do kopf.get(ctx.spec, path) end
end)
