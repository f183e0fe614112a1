-- Each function of `kube` on a real server. A difference fails the handler; what is refused is told in the log.

local function config(name, data)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = { app = "calls" } }, data = data }
end

local function check(what, found, expected)
    if found ~= expected then
        error(what .. ": " .. tostring(found) .. " instead of " .. tostring(expected))
    end
end

local function refused(ctx, what, call)
    local ok, e = pcall(call)
    check(what .. " is refused", ok, false)
    ctx.logger:info(what .. " gives " .. tostring(e.status) .. " " .. e.reason .. ": " .. e)
end

local function objects()
    local made = kube.create(config("made", { a = "1" }))
    check("created", made.data.a, "1")
    check("dry", kube.create(config("dry"), { dry_run = true }).metadata.name, "dry")
    check("nothing after a dry run", kube.get("configmaps", { name = "dry" }), nil)
    check("patched", kube.patch(made, { data = { b = "2", a = kopf.null } }).data.a, nil)
    check("operations", kube.patch(made, { { op = "add", path = "/data/c", value = "3" } }).data.c, "3")
    check("strategic", kube.patch(made, { data = { d = "4" } }, { type = "strategic" }).data.d, "4")
    check("got", kube.get("v1", "ConfigMap", { name = "made" }).data.b, "2")
    check("got itself", kube.get(made).data.d, "4")
    check("applied", kube.apply(config("applied", { x = "1", y = "2" }), { field_manager = "one" }).data.y, "2")
    check("left out", kube.apply(config("applied", { x = "1" }), { field_manager = "one" }).data.y, nil)
    check("listed", #kube.list("cm", { label_selector = "app=calls" }), 2)
    check("limited", #kube.list("cm", { limit = 1 }), 1)
    check("everywhere", #kube.list("cm", { label_selector = { app = "calls" }, namespace = "*" }) >= 2, true)
    check("by fields", #kube.list("cm", { field_selector = "metadata.name=made" }), 1)
    return made
end

local function refusals(ctx, made)
    refused(ctx, "an existing object", function() kube.create(config("made")) end)
    refused(ctx, "an old version", function() kube.replace(made) end)
    refused(ctx, "a field of another", function() kube.apply(config("applied", { x = "9" }), { field_manager = "two" }) end)
    check("by force", kube.apply(config("applied", { x = "9" }), { field_manager = "two", force = true }).data.x, "9")
    refused(ctx, "a wrong name", function() kube.create(config("WRONG")) end)
    refused(ctx, "a missing object", function() kube.patch(config("none"), { data = {} }) end)
    refused(ctx, "another uid", function() kube.delete(made, { uid = "other" }) end)
    refused(ctx, "a missing namespace", function() kube.create(config("lost"), { namespace = "no-such-place" }) end)
    refused(ctx, "an unknown resource", function() kube.list("unicorns") end)
end

local function workloads(ctx)
    local template = { metadata = { labels = { app = "web" } }, spec = { containers = { { name = "main", image = "x" } } } }
    local spec = { replicas = 1, selector = { matchLabels = { app = "web" } }, template = template }
    local web = kube.create({ apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "web" }, spec = spec })
    check("scaled", kube.scale(web, 3).spec.replicas, 3)
    check("scaled", kube.get("deployments", { name = "web" }).spec.replicas, 3)
    local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "worker" }, spec = template.spec }
    pod.spec.serviceAccountName = nil
    pod = kube.create(pod)
    check("no node, no logs", kube.logs("worker"), "")
    kube.patch(pod, { status = { conditions = { { type = "Ready", status = "True" } } } }, { subresource = "status" })
    check("ready", kube.wait(pod, "condition=Ready", 10).metadata.name, "worker")
    check("evicted", kube.evict(pod, { grace_period = 0 }), true)
    check("gone", kube.wait(pod, "deleted", 20), true)
    check("evicted again", kube.evict("worker"), false)
end

local function ends(ctx, made)
    local seen = {}
    for event in kube.watch("configmaps", { label_selector = "app=calls", timeout = 20 }) do
        seen[#seen + 1] = event.type .. " " .. event.object.metadata.name
        if #seen == 2 then
            kube.delete(made)
        elseif #seen == 3 then
            break
        end
    end
    check("watched", table.concat(seen, ", "), "ADDED applied, ADDED made, DELETED made")
    check("deleted", kube.delete(config("applied"), { propagation = "Background" }), true)
    check("deleted again", kube.delete(config("applied")), false)
    check("a wait for the end", kube.wait(config("applied"), "deleted"), true)
    check("allowed", kube.can_i("create", "deployments.apps"), true)
    check("version", kube.version().major, "1")
end

function calls_fn(ctx)
    local made = objects()
    refusals(ctx, made)
    workloads(ctx)
    ends(ctx, made)
    check("itself", kube.get(ctx).metadata.uid, ctx.uid)
    return "all is well"
end

kopf.on_create("kopfexamples", { errors = "permanent" }, calls_fn)
