-- expect: longer than 8 MiB
-- limit: string
-- Long texts put together from a table.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = string.rep("x", 1000000)
    local t = table.create(100, s)
    return #table.concat(t)
end)
