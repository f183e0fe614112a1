-- says: template.render: line 1: .*more than 100000 items
-- holds: 4 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = "{% set x = [1, 2] %}" .. string.rep("{% set x = [x, x, x, x, x, x, x, x, x, x] %}", 30) .. "{{ x == x }}{{ x }}"
    template.render(text, {}) -- HERE
end)
