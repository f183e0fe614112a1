-- expect: would have more than 100000 items
-- limit: none
-- More items than libraries take.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = {}
    for i = 1, 150000 do list[i] = 1 end
    lists.unique(list)
end)
