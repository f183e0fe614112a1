-- says: a function of ctx.patch.fns would add more than 20000 items to the body: 20001
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.fns:append(function(body)
        local list = {}
        for i = 1, 20000 do list[i] = i end
        body.spec.list = list
    end)
end)
