-- says: template.render: line 1: the namespace `ns` can only be used with a field
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{% set ns = namespace() %}{% set ns.x = ns %}", {}) -- HERE
end)
