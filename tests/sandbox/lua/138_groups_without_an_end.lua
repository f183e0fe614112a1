-- expect: would have more than 100000 items
-- limit: none
-- Many groups for each of many letters.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    re.captures_all(string.rep("()", 100) .. "x", string.rep("x", 20000))
end)
