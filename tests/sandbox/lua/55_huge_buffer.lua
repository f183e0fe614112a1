-- expect: longer than 1 MiB
-- limit: string
-- A buffer of a gigabyte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return buffer.len(buffer.create(1000000000))
end)
