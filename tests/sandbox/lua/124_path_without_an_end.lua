-- expect: more than 128 steps
-- limit: none
-- A map in a map in a map: the stack of the thread would end before it.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    deep.set({}, string.rep("a.", 400000) .. "b", 1)
end)
