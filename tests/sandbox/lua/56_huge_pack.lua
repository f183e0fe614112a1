-- expect: longer than 1 MiB
-- limit: string
-- A packed text of a gigabyte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return #string.pack(">!16 s4 xxxxxxxx", string.rep("x", 1048570))
end)
