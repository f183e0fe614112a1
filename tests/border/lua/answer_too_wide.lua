-- says: json.decode: invalid JSON: the result would have more than 100000 items
-- holds: 4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    json.decode("[" .. string.rep("0,", 100000) .. "0]") -- HERE
end)
