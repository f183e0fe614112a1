-- says: template.render: line 1: more than 200 calls of filters
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.filter("same", function(x) return x end)
    template.render("{% for i in range(2000) %}{{ i | same }}{% endfor %}", {}) -- HERE
end)
