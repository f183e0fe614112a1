-- Templates that extend files next to the script.

function page(ctx)
    local text = '{% extends "page.j2" %}{% block title %}{{ super() }} of {{ name }}{% endblock %}{% block body %}size {{ size }}{% endblock %}'
    return template.render(text, { name = ctx.name, size = ctx.spec.size })
end
function circle(ctx)
    return template.render('{% extends "circle.j2" %}', {})
end
function missing(ctx)
    return template.render('{% extends "other.j2" %}', {})
end

kopf.on_create("kopfexamples", page)
kopf.on_create("kopfexamples", { retries = 1 }, circle)
kopf.on_create("kopfexamples", { retries = 1 }, missing)
