-- expect: used more than 0.2 s
-- limit: cpu
-- Backtracking without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.find(string.rep("a", 60), string.rep("a-", 30) .. "b")
end)
