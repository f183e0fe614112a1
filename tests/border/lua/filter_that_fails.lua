-- says: Handler 'hostile' is skipped: its filter 'when' failed .*no luck
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" }, when = function(ctx)
    error("no luck") -- HERE
end }, function() end)
