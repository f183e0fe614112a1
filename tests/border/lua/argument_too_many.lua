-- says: json.encode: too many arguments, 5: expected json.encode\(value, \[options\]\)
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    json.encode(1, 2, 3, 4, 5) -- HERE
end)
