-- expect: the result is larger than 1 MiB
-- limit: result
-- A result that is one long text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.rep("x", 2000000)
end)
