-- says: template.render: line 1: loop.cycle: expected at least one value
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{% for i in [1] %}{{ loop.cycle() }}{% endfor %}", {}) -- HERE
end)
