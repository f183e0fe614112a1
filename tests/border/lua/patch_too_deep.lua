-- says: patch.status.a(.x)+…: nested deeper than 128 levels
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local deep = {}
    for _ = 1, 126 do deep = { x = deep } end
    ctx.patch.status.a = deep -- HERE
end)
