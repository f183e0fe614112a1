-- expect: used more than 0.2 s
-- limit: cpu
-- Borders of words are looked for in the slow way where a text is not ASCII.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("äö ", 150000)
    while true do re.find("\\bx+\\b", text) end
end)
