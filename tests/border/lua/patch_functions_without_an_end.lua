-- says: ctx.patch.fns would have more than 10000 functions
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for _ = 1, 10001 do
        ctx.patch.fns:append(function() end) -- HERE
    end
end)
