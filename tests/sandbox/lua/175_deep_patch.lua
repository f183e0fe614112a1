-- expect: patch\.status\.a(\.x)+…: nested deeper than 128 levels
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.patch.status.a = { x = 1 }
    for turn = 1, 20 do
        local inner = { x = ctx.patch.status.a }
        for level = 1, 100 do inner = { x = inner } end
        ctx.patch.status.a = inner
    end
end)
