-- expect: patch.* larger than 64 KiB
-- limit: result
-- A patch of many large fields.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = string.rep("x", 1000)
    for i = 1, 1e9 do ctx.patch.status["field" .. i] = s .. i end
end)
