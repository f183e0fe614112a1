-- expect: rendering takes more than 1000000 steps
-- limit: none
-- Millions of turns, each with a look at a long list.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = {}
    for i = 1, 2000 do list[i] = "text" end
    local text = "{% for a in list %}{% for b in list %}{% if list | json %}{% endif %}{% endfor %}{% endfor %}"
    template.render(text, { list = list })
end)
