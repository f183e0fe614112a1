-- says: template.render: `values`.a: a function cannot be kept as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{{ a }}", { a = function() end }) -- HERE
end)
