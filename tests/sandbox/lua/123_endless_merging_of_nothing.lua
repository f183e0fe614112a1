-- expect: used more than 0.2 s
-- limit: cpu
-- Each field is taken out from in front of all others.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local map, over = {}, {}
    for i = 1, 2000 do map["a" .. i], over["a" .. i] = i, kopf.null end
    while true do deep.merge(map, over) end
end)
