-- says: template.render: line 1: .*items
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{% set x = [1] * 90000000 %}{{ x ~ x }}", {}) -- HERE
end)
