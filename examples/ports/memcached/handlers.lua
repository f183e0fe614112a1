local KIND = "memcacheds.example.com"

function apply(ctx)
    for _, file in { "service.yaml.j2", "statefulset.yaml.j2" } do
        local text = template.render('{% include "templates/' .. file .. '" %}', { name = ctx.name, spec = ctx.spec })
        local child = kopf.adopt(yaml.decode(text))
        kube.apply(child)
    end
    ctx.patch.status.address = `memcached-{ctx.name}.{ctx.namespace}:11211`
end

function ready(ctx)
    local owner = ctx.meta.labels["app.kubernetes.io/instance"]
    kube.patch({ apiVersion = "example.com/v1", kind = "Memcached", metadata = { name = owner, namespace = ctx.namespace } }, {
        status = { ready = ctx.status.readyReplicas or 0 },
    }, { subresource = "status" })
end

kopf.on_create(KIND, apply)
kopf.on_resume(KIND, apply)
kopf.on_update(KIND, { field = "spec" }, apply)
kopf.on_event("statefulsets.apps", { labels = { ["app.kubernetes.io/name"] = "memcached" } }, ready)
