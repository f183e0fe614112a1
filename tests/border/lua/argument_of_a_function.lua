-- says: json.encode: `value`\[2\].x: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    json.encode({ 1, { x = print } }) -- HERE
end)
