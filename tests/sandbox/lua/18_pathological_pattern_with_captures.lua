-- expect: used more than 0.2 s
-- limit: cpu
-- Backtracking through many quantifiers.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.match(string.rep("x", 5000), string.rep(".*", 20) .. "y")
end)
