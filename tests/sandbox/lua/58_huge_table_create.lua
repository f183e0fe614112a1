-- expect: table overflow
-- limit: none
-- A table of a billion items.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return #table.create(1000000000, 1)
end)
