-- expect: memo.b is larger than 64 KiB as JSON
-- limit: result
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.a = { text = string.rep("a", 30000) }
    for i = 1, 10 do
        ctx.memo.b = { ctx.memo.a, ctx.memo.a, ctx.memo.a }
        ctx.memo.a = nil
        ctx.memo.a = ctx.memo.b
        ctx.memo.b = nil
    end
end)
