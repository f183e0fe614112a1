-- says: the result.items\[3\].x: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return { items = { 1, 2, { x = print } } }
end)
