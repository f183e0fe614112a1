-- says: waiting is not possible inside a metamethod, table.sort or string.gsub
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    table.sort({ 1, 2, 3 }, function() kopf.sleep(1) return true end) -- HERE
end)
