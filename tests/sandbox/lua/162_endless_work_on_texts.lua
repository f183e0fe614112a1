-- expect: used more than 0.2 s
-- limit: cpu
-- Texts that are cut, searched and put together.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("ab,", 30000)
    while true do strings.join(strings.split(strings.replace(strings.upper(text), "A", "B"), ","), ";") end
end)
