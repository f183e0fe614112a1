-- A ConfigMap for each name in the spec, which shows whether it was made in a plan.

kopf.reconcile("kopfexamples", { id = "maps", owns = "configmaps" }, function(ctx)
    local children = {}
    for _, name in ctx.spec.children do
        table.insert(children, {
            apiVersion = "v1",
            kind = "ConfigMap",
            metadata = { name = ctx.name .. "-" .. name },
            data = { value = ctx.spec.value, dry = tostring(ctx.dry) },
        })
    end
    return { children = children, status = { children = #children } }
end)
