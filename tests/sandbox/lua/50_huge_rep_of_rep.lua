-- expect: longer than 1 MiB
-- limit: string
-- By way of a method, and caught once.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    pcall(string.rep, "x", 1e9)
    return #("x"):rep(9000000)
end)
