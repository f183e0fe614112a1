-- expect: used more than 0.2 s
-- limit: cpu
-- Each shifts the whole list.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = table.create(400000, 1)
    while true do
        table.insert(t, 1, 0)
        table.remove(t, 1)
    end
end)
