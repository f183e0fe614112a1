-- says: it returned ".*", which is not one of the due handlers
-- holds: 32 MiB
kopf.set_default_lifecycle(function(handlers, ctx)
    return #handlers == 1 and handlers or "y" .. string.rep("x", 199)
end)
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    for i = 1, 1000 do
        kopf.subhandler({ id = string.rep("x", 170) .. i }, function() end)
    end
end)
