-- expect: used more than 0.2 s
-- limit: cpu
-- Each rendering stays below the limit of steps, all of them have no end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = table.create(60, "text")
    local text = "{% for a in list %}{% for b in list %}{% if list | json %}{% endif %}{% endfor %}{% endfor %}"
    while true do template.render(text, { list = list }) end
end)
