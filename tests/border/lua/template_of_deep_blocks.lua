-- says: template.render: line 1: the block `b\d+` is more than 16 levels deep
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = ""
    for i = 1, 100 do text = "{% block b" .. i .. " %}" .. text .. "{% endblock %}" end
    template.render(text, {}) -- HERE
end)
