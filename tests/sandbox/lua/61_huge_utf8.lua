-- expect: string slice too long
-- limit: none
-- A code for each character.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return select("#", utf8.codepoint(string.rep("x", 1048576), 1, -1))
end)
