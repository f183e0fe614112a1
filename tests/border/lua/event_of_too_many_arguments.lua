-- says: kopf.info: too many arguments: after the object it takes reason, message and a map of options; format the message before the call
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.info(ctx.body, "Reason", "x %s", "y") -- HERE
end)
