-- Returns the children that the spec lists.
kopf.reconcile("webs", {
    owns = { "configmaps", "namespaces", "deployments" },
    resync = "1h",
    finalizer = true,
}, function(ctx)
    ctx.memo.calls = (ctx.memo.calls or 0) + 1
    local names = {}
    for name in ctx.children.configmaps do
        table.insert(names, name)
    end
    table.sort(names)
    return {
        children = ctx.spec.children,
        status = { calls = ctx.memo.calls, configmaps = names },
        requeue = ctx.spec.requeue,
    }
end)

-- Annotates children, and no other objects.
kopf.on_event("configmaps", { parent = "webs" }, function(ctx)
    if ctx.type == "ADDED" and ctx.parent then
        ctx.patch.metadata.annotations = { parent = ctx.parent.metadata.name }
    end
end)
