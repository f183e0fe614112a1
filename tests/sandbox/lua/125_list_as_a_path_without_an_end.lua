-- expect: more than 128 steps
-- limit: none
-- The same, as a list.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local path = {}
    for i = 1, 20000 do path[i] = "a" end
    deep.set({}, path, 1)
end)
