-- expect: the result is larger than 64 KiB as JSON
-- limit: result
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.text = string.rep("a", 50000)
    local list = {}
    for i = 1, 5000 do list[i] = ctx.memo end
    return list
end)
