-- says: there is no kopf.faill; did you mean `kopf.fail`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.faill("no") -- HERE
end)
