-- expect: used more than 0.2 s
-- limit: cpu
-- The same by gmatch, with a balanced match.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("(", 500000)
    for _ in string.gmatch(text, "%b()x") do end
    while true do string.find(text, "%b()") end
end)
