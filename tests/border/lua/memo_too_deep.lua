-- says: memo.a(.x)+…: nested deeper than 128 levels
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local deep = {}
    for _ = 1, 127 do deep = { x = deep } end
    ctx.memo.a = deep -- HERE
end)
