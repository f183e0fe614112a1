-- expect: string slice too long
-- limit: none
-- A number for each byte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return select("#", string.byte(string.rep("x", 1048576), 1, -1))
end)
