-- says: kopf.on_create was called after the script was loaded
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.on_create("kopfexamples", function() end) -- HERE
end)
