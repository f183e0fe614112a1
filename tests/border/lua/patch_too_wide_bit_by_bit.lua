-- says: the patch would have more than 20000 items: 20001 together
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.status.items = { 1, 2, 3 }
    for i = 1, 4998 do
        ctx.patch.status["field" .. i] = { a = { b = { c = i } } }
        ctx.patch.status["field" .. i] = { a = { b = { i } } }
    end
    ctx.patch.status.full = 1
    ctx.patch.status.full = nil
    ctx.patch.status.full = 2
    ctx.patch.metadata.annotations.more = "1" -- HERE
end)
