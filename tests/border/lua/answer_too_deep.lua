-- says: json.decode: invalid JSON: .*recursion|json.decode: .*128
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    json.decode(string.rep("[", 200) .. string.rep("]", 200)) -- HERE
end)
