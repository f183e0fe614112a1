-- says: this handler has more than 1000 sub-handlers, including those below them
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 1001 do
        kopf.subhandler({ id = "s" .. i }, function() end) -- HERE
    end
end)
