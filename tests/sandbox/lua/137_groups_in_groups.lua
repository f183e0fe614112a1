-- expect: a string would be longer than
-- limit: string
-- Each group has caught the same text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local groups = string.rep("(", 90) .. "x+" .. string.rep(")", 90)
    re.captures(groups, string.rep("x", 30000))
end)
