-- expect: used more than 0.2 s
-- limit: cpu
-- The same without asking for a plain search.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text, part = string.rep("a", 1000000), string.rep("a", 500000) .. "b"
    while true do string.find(text, part) end
end)
