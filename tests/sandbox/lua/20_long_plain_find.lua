-- expect: used more than 0.2 s
-- limit: cpu
-- A plain search that costs the product of both lengths.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text, part = string.rep("a", 1000000), string.rep("a", 500000) .. "b"
    while true do string.find(text, part, 1, true) end
end)
