-- says: template.render: line 2: .*recursion limit
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{% macro f(x) %}\n{{ f(x) }}{% endmacro %}{{ f(1) }}", {}) -- HERE
end)
