-- Objects without a namespace.

function create_fn(ctx)
    ctx.logger:info(`{ctx.name} in {ctx.namespace or "no namespace"}, of {ctx.meta.namespace or "none"}, {ctx.uid}`)
    ctx.logger:info(`namespaced: {ctx.resource.namespaced}, {ctx.resource.plural}.{ctx.resource.version}.{ctx.resource.group}`)
    return ctx.name
end

kopf.on_create("planets", create_fn)
kopf.on_delete("planets", { id = "delete" }, function(ctx) end)
