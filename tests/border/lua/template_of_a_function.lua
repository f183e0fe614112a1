-- says: template.render: `values`.a: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{{ a }}", { a = function() end }) -- HERE
end)
