-- expect: used more than 0.2 s
-- limit: cpu
-- Lists that are sorted, cut and put together.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = lists.range(1, 5000)
    while true do lists.flatten(lists.chunks(lists.sort(lists.reverse(lists.difference(list, { 7 }))), 3)) end
end)
