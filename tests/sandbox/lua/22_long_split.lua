-- expect: used more than 0.2 s
-- limit: cpu
-- string.split compares the separator at each place.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text, part = string.rep("a", 1000000), string.rep("a", 500000) .. "b"
    while true do string.split(text, part) end
end)
