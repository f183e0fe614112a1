-- The cluster client: objects.

function startup_fn(ctx)
    local settings = kube.get("configmaps", { name = "settings", namespace = "ns1" })
    ctx.logger:info("at the start: " .. settings.data.colour .. ", " .. tostring(settings.metadata.managedFields))
end

local function shown(data)
    if data == nil then
        return "nil"
    end
    local parts = {}
    for key, value in pairs(data) do
        parts[#parts + 1] = string.format("%q:%q", key, value)
    end
    table.sort(parts)
    return "{" .. table.concat(parts, ",") .. "}"
end

local function names(list)
    local found = {}
    for _, object in ipairs(list) do
        found[#found + 1] = object.metadata.name
    end
    return table.concat(found, " ")
end

local function config(name, data)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = { app = "web" } }, data = data }
end

local function write(log)
    local made = kube.create(config("made", { a = "1" }))
    log:info("created " .. made.metadata.name .. " in " .. made.metadata.namespace)
    made.data.a = "2"
    local replaced = kube.replace(made)
    log:info("replaced: " .. shown(replaced.data))
    local patched = kube.patch(replaced, { data = { b = "3", a = kopf.null } })
    log:info("patched: " .. shown(patched.data))
    patched = kube.patch(
        { apiVersion = "v1", kind = "ConfigMap", name = "made" },
        { { op = "add", path = "/data/c", value = "4" } }
    )
    log:info("patched by operations: " .. shown(patched.data))
    local applied = kube.apply(config("applied", { x = "1", y = "2" }))
    applied = kube.apply(config("applied", { x = "1" }))
    log:info("applied: " .. shown(applied.data))
    local generated = kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "made-" } })
    log:info("generated: " .. tostring(#generated.metadata.name > 5))
    kube.delete(generated)
    return made
end

local function read(log)
    log:info("get: " .. kube.get("ConfigMap", { name = "made" }).data.b)
    log:info("get: " .. kube.get("v1", "configmaps", { name = "made" }).data.c)
    log:info("get: " .. kube.get("cm", { name = "applied" }).data.x)
    log:info("get: " .. kube.get("configmaps.v1", { name = "made", namespace = "ns1" }).data.c)
    log:info("absent: " .. tostring(kube.get("configmaps", { name = "none" }) == nil))
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = "wide" } })
    log:info("cluster-wide: " .. kube.get("ns", { name = "wide" }).kind)
    log:info("list: " .. names(kube.list("configmaps")))
    log:info("by labels: " .. names(kube.list("configmaps", { label_selector = "app=web" })))
    log:info("by a map: " .. names(kube.list("configmaps", { label_selector = { app = "web" } })))
    log:info("by fields: " .. names(kube.list("configmaps", { field_selector = { ["metadata.name"] = "made" } })))
    log:info("two: " .. names(kube.list("configmaps", { limit = 2 })))
    log:info("everywhere: " .. names(kube.list("configmaps", { namespace = "*" })))
    log:info("elsewhere: " .. #kube.list("configmaps", { namespace = "ns2" }))
    local listed = kube.list("configmaps")[1]
    log:info("kinds: " .. listed.apiVersion .. " " .. listed.kind)
end

local function delete(log)
    log:info("dry: " .. tostring(kube.delete(config("made"), { dry_run = true })) .. " " .. names(kube.list("cm")))
    log:info("deleted: " .. tostring(kube.delete(config("made"), { propagation = "background", grace_period = 0 })))
    log:info("again: " .. tostring(kube.delete(config("made"))))
    kube.create(config("dry"), { dry_run = true })
    kube.apply(config("dry"), { dry_run = true })
    kube.patch(config("applied"), { data = { x = "dry" } }, { dry_run = true })
    log:info("after dry runs: " .. kube.get("cm", { name = "applied" }).data.x .. ", " .. names(kube.list("cm")))
end

local function pods(log)
    local pod = {
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = "worker", annotations = { ["dev.kopf/log"] = "first\nsecond" } },
        spec = { nodeName = "node", containers = { { name = "main", image = "busybox" } } },
    }
    pod = kube.create(pod)
    local running = { containerID = "x", imageID = "x", image = "busybox", name = "main", ready = true, restartCount = 0 }
    running.state = { running = { startedAt = "2026-01-01T00:00:00Z" } }
    pod = kube.patch(
        pod,
        { status = { phase = "Running", containerStatuses = { running } } },
        { subresource = "status" }
    )
    log:info("logs: " .. kube.logs("worker", { tail = 1 }) .. #kube.logs(pod, { container = "main", since = "1h" }))
    log:info("evicted: " .. tostring(kube.evict(pod, { grace_period = 0 })))
    log:info("again: " .. tostring(kube.evict("worker")))
end

function create_fn(ctx)
    local log = ctx.logger
    write(log)
    read(log)
    delete(log)
    pods(log)
    local set = {
        apiVersion = "apps/v1",
        kind = "Deployment",
        metadata = { name = "web" },
        spec = {
            replicas = 1,
            selector = { matchLabels = { app = "web" } },
            template = {
                metadata = { labels = { app = "web" } },
                spec = { containers = { { name = "main", image = "busybox" } } },
            },
        },
    }
    set = kube.create(set)
    log:info("scaled: " .. kube.scale(set, 3).spec.replicas .. ", " .. kube.get("deployments", { name = "web" }).spec.replicas)
    log:info("may: " .. tostring(kube.can_i("create", "deployments.apps")) .. ", " .. tostring(kube.can_i("list", "pods", { namespace = "*" })))
    log:info("version: " .. kube.version().major)
    log:info("itself: " .. kube.get(ctx).spec.colour .. ", " .. kube.get(ctx.body).spec.colour .. ", " .. #kube.list(ctx.resource))
end

function own_fn(ctx)
    kube.patch(ctx, { metadata = { annotations = { colour = "green" } } })
    ctx.patch.status.done = true
    return "patched"
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", { field = "spec.colour" }, create_fn)
kopf.on_create("kopfexamples", { field = "spec.own" }, own_fn)
