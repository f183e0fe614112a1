-- expect: `pattern`: 
-- limit: none
-- Groups in groups, deeper than the stack.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    re.test(string.rep("(", 4000) .. string.rep(")", 4000), "x")
end)
