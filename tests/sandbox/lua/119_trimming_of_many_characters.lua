-- expect: `characters`: more than 256
-- limit: none
-- Each character of one text, looked for in another.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    strings.trim(string.rep("x", 1000000), string.rep("a", 500000) .. "x")
end)
