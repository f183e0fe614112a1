-- expect: longer than 1 MiB
-- limit: string
-- Long texts put together from a table.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = string.rep("x", 100000)
    local t = table.create(30, s)
    return #table.concat(t)
end)
