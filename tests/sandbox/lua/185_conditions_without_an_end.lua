-- expect: ctx.conditions.set: more than 100 conditions
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for i = 1, 5000 do ctx.conditions:set("Type" .. i, true, "Reason", string.rep("a", 30000)) end
end)
