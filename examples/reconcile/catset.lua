-- An ordered StatefulSet: a pod is created when all pods before it are ready, and the last one is deleted first.
-- Metacontroller's sample CatSet, written from its description.

local function claim(ctx, name)
    return {
        apiVersion = "v1",
        kind = "PersistentVolumeClaim",
        metadata = { name = "data-" .. name },
        spec = {
            accessModes = { "ReadWriteOnce" },
            resources = { requests = { storage = ctx.spec.storage } },
        },
    }
end

local function pod(ctx, name)
    return {
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = name, labels = { catset = ctx.name } },
        spec = {
            hostname = name,
            containers = { { name = "main", image = ctx.spec.image } },
            volumes = { { name = "data", persistentVolumeClaim = { claimName = "data-" .. name } } },
        },
    }
end

local function is_ready(pod)
    for _, condition in kopf.get(pod, "status.conditions") or {} do
        if condition.type == "Ready" then
            return condition.status == "True"
        end
    end
    return false
end

kopf.reconcile("catsets", { owns = { "pods", "persistentvolumeclaims" } }, function(ctx)
    local pods = ctx.children.pods
    local function at(index)
        return pods[`{ctx.name}-{index}`]
    end
    local replicas, ready, present, children = ctx.spec.replicas, 0, 0, {}
    while ready < replicas and at(ready) and is_ready(at(ready)) do
        ready += 1
    end
    for name in pods do
        present = math.max(present, tonumber(string.match(name, "-(%d+)$")) + 1)
    end
    -- Up: one more than are ready. Down: one less than there are.
    local wanted = present
    if present > replicas then
        wanted = present - 1
    elseif ready == present and present < replicas then
        wanted = present + 1
    end
    for index = 0, wanted - 1 do
        local name = `{ctx.name}-{index}`
        table.insert(children, claim(ctx, name))
        table.insert(children, pod(ctx, name))
    end
    return {
        children = children,
        status = { replicas = wanted, readyReplicas = ready },
        conditions = {
            {
                type = "Ready",
                status = ready == replicas,
                message = `{ready} of {replicas} pods are ready`,
            },
        },
    }
end)
