-- expect: pattern too complex
-- limit: none
-- A pattern that nests deeper than the matcher.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.find(string.rep("x", 1000), string.rep("x?", 1000) .. "y")
end)
