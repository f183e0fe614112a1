-- says: template.render: .*4 MiB
-- holds: 4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 1000000)
    template.render("{{ a }}{{ a }}{{ a }}{{ a }}{{ a }}", { a = text }) -- HERE
end)
