-- A Deployment that runs the new version next to the old one, and switches the Service when all of its pods are ready.
-- Metacontroller's sample BlueGreenDeployment, written from its description.

local OTHER = { blue = "green", green = "blue" }

local function replica_set(ctx, color, image, replicas)
    local labels = { app = ctx.name, color = color }
    return {
        apiVersion = "apps/v1",
        kind = "ReplicaSet",
        metadata = { name = `{ctx.name}-{color}`, labels = labels },
        spec = {
            replicas = replicas,
            selector = { matchLabels = labels },
            template = {
                metadata = { labels = labels },
                spec = { containers = { { name = "main", image = image } } },
            },
        },
    }
end

local function service(ctx, color)
    return {
        apiVersion = "v1",
        kind = "Service",
        metadata = { name = ctx.name },
        spec = { selector = { app = ctx.name, color = color }, ports = { { port = ctx.spec.port } } },
    }
end

local function image_of(set)
    return set and set.spec.template.spec.containers[1].image
end

-- Whether all pods of the present version of a set are ready.
local function is_ready(ctx, set)
    local is_current = kopf.get(set, "status.observedGeneration", 0) >= kopf.get(set, "metadata.generation", 0)
    return is_current and kopf.get(set, "status.readyReplicas", 0) >= ctx.spec.replicas
end

kopf.reconcile("bluegreens", { owns = { "replicasets", "services" } }, function(ctx)
    local active = kopf.get(ctx.status, "active", "blue")
    local next = OTHER[active]
    local sets = ctx.children.replicasets
    local present, coming = sets[`{ctx.name}-{active}`], sets[`{ctx.name}-{next}`]
    local is_rolling = present ~= nil and image_of(present) ~= ctx.spec.image
    if is_rolling and image_of(coming) == ctx.spec.image and is_ready(ctx, coming) then
        active, next, is_rolling = next, active, false
        present, coming = coming, present
    end
    local children = { service(ctx, active) }
    table.insert(children, replica_set(ctx, active, is_rolling and image_of(present) or ctx.spec.image, ctx.spec.replicas))
    if is_rolling then
        table.insert(children, replica_set(ctx, next, ctx.spec.image, ctx.spec.replicas))
    elseif coming then
        -- The old version is kept without pods.
        table.insert(children, replica_set(ctx, next, image_of(coming), 0))
    end
    return {
        children = children,
        status = { active = active },
        conditions = {
            { type = "Available", status = is_ready(ctx, present) },
            { type = "Progressing", status = is_rolling },
        },
    }
end)
