-- expect: used more than 0.2 s
-- limit: cpu
-- Long texts by chance.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do random.string(200000) end
end)
