-- says: kopf.event: `message`: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.event(ctx.body, "Normal", "Reason", function() end) -- HERE
end)
