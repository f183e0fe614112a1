-- expect: used more than 0.2 s
-- limit: cpu
-- Texts of many digits, again and again.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local digits = string.rep("9", 1000000)
    while true do tonumber(digits); tonumber(digits, 36) end
end)
