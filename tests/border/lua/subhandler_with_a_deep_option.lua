-- says: param(.x)+…: nested deeper than 128 levels
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local deep = {}
    for _ = 1, 130 do deep = { x = deep } end
    kopf.subhandler({ id = "s", param = deep }, function() end) -- HERE
end)
