-- says: the result(.x)+…: nested deeper than 128 levels
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local deep = {}
    for _ = 1, 128 do deep = { x = deep } end
    return deep
end)
