-- expect: memo\.a(\.x)+…: nested deeper than 128 levels
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.memo.a = {}
    for turn = 1, 20 do
        local inner = { x = ctx.memo.a }
        for level = 1, 100 do inner = { x = inner } end
        ctx.memo.a = inner
    end
end)
