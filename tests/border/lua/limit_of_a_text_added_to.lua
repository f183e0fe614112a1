-- says: a string would be longer than 4 MiB \(settings.sandbox.string_size\)
-- holds: 20 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = "x"
    while true do text = text .. text end -- HERE
end)
