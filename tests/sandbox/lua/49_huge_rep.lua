-- expect: longer than 1 MiB
-- limit: string
-- A text of a gigabyte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return #string.rep("x", 1000000000)
end)
