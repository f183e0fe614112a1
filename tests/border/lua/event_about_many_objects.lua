-- says: kopf.info: events about more than 1000 objects
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local all = {}
    for i = 1, 1001 do all[i] = { apiVersion = "v1", kind = "Pod", metadata = { name = "p" .. i } } end
    kopf.info(all, "Reason", "m") -- HERE
end)
