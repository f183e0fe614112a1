-- expect: longer than 8 MiB|size
-- limit: string
-- A packed text of a gigabyte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return #string.pack(">!16 s4 xxxxxxxx", string.rep("x", 8388600))
end)
