-- expect: the result is larger than 64 KiB
-- limit: result
-- A result that is one long text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.rep("x", 100000)
end)
