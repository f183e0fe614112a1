-- expect: used more than 0.2 s
-- limit: cpu
-- Each field, compared with each of many names.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local map, names = {}, {}
    for i = 1, 2000 do map["a" .. i], names[i] = i, "b" .. i end
    while true do deep.omit(map, names) end
end)
