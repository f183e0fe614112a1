-- expect: a string would be longer than 1 MiB
-- limit: string
-- Natives take texts for numbers.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return #string.rep("x", "100000000")
end)
