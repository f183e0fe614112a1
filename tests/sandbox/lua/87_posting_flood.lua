-- expect: used more than 0.2 s
-- limit: cpu
-- Events without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do kopf.info(ctx.body, { reason = 'R', message = string.rep('x', 100000) }) end
end)
