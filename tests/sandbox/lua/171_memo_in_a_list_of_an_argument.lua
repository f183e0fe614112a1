-- expect: larger than 1 MiB as JSON
-- limit: string
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.text = string.rep("a", 50000)
    local list = {}
    for i = 1, 5000 do list[i] = { ctx.memo } end
    return #json.encode(list)
end)
