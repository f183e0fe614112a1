-- expect: used more than 0.2 s
-- limit: cpu
-- Millions of matches that leave nothing behind.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("x", 1000000)
    while true do string.gsub(text, ".", "") string.gsub(text, "x", { x = "" }) utf8.len(text) string.find(text, "y") end
end)
