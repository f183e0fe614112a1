-- expect: used more than 0.2 s
-- limit: cpu
-- Lines without an end: they take no memory, and the time runs.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do ctx.logger:debug('x') print('') end
end)
