-- says: kopf.subhandler.* 4 MiB|larger than 4 MiB|4 MiB
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 900000)
    for i = 1, 6 do
        kopf.subhandler({ id = "s" .. i, param = text }, function() end) -- HERE
    end
end)
