-- A ConfigMap for each name in the spec, and a Deployment with values that a server normalizes.

local function map(ctx, name)
    return {
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = `{ctx.name}-{name}` },
        data = { value = ctx.spec.value },
    }
end

local function deployment(ctx)
    local labels = { app = ctx.name }
    local limits = { cpu = "1000m", memory = "0.5Gi" }
    return {
        apiVersion = "apps/v1",
        kind = "Deployment",
        metadata = { name = ctx.name },
        spec = {
            replicas = 0,
            selector = { matchLabels = labels },
            template = {
                metadata = { labels = labels },
                spec = { containers = { { name = "main", image = "x", resources = { limits = limits } } } },
            },
        },
    }
end

kopf.reconcile("kopfexamples", {
    owns = { "configmaps", "deployments" },
    finalize = function(ctx)
        ctx.logger:info("Finalized")
    end,
}, function(ctx)
    local children = { deployment(ctx) }
    for _, name in ctx.spec.children do
        table.insert(children, map(ctx, name))
    end
    local count = 0
    for _ in ctx.children.configmaps do
        count += 1
    end
    return { children = children, status = { children = count } }
end)
