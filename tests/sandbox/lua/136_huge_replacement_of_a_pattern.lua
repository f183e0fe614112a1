-- expect: a string would be longer than
-- limit: string
-- What was found, again and again in the place of what was found.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    re.replace("x+", string.rep("x", 10000), string.rep("$0", 50000))
end)
