local function map(name, namespace)
    return {
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = name, namespace = namespace },
        data = { x = "1" },
    }
end

local function new(spec)
    local web = { apiVersion = "example.com/v1", kind = "Web", metadata = { name = "one" }, spec = spec }
    web = kube.create(web)
    kopf.sleep(1)
    return web
end

local function deployment()
    local labels = { app = "web" }
    return {
        apiVersion = "apps/v1",
        kind = "Deployment",
        metadata = { name = "app" },
        spec = {
            selector = { matchLabels = labels },
            template = {
                metadata = { labels = labels },
                spec = {
                    containers = {
                        { name = "main", image = "x", resources = { limits = { cpu = "1000m", memory = "0.5Gi" } } },
                    },
                },
            },
        },
    }
end

kopf.test("a child is owned and marked", function()
    local web = new({ children = { map("a") } })
    local meta = kube.get("configmaps", { name = "a" }).metadata
    check.equal(meta.ownerReferences[1].uid, web.metadata.uid)
    check.equal(meta.ownerReferences[1].controller, true)
    check.equal(meta.labels["kopf.dev/parent"], web.metadata.uid)
    check.equal(kube.get(web).status.configmaps, { "a" })
end)

kopf.test("defaults and normalized values are no difference", function()
    new({ children = { deployment() } })
    kopf.sleep(60)
    local before = kube.get("deployments", { name = "app" })
    before = kube.patch(before, { metadata = { annotations = { of = "others" } } })
    kopf.sleep(60)
    local after = kube.get(before)
    check.equal(after.metadata.annotations.of, "others")
    check.equal(after.metadata.generation, before.metadata.generation)
end)

kopf.test("children without an owner reference are deleted with their parent", function()
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = "other" } })
    local web = new({
        children = {
            map("b", "other"),
            { apiVersion = "v1", kind = "Namespace", metadata = { name = "made" } },
        },
    })
    local other = kube.get("configmaps", { name = "b", namespace = "other" })
    check.equal(other.metadata.ownerReferences, nil)
    check.equal(kube.get(web).status.configmaps, { "other/b" })
    kube.delete(web)
    kopf.sleep(5)
    check.equal(kube.get(web), nil)
    check.equal(kube.get(other), nil)
end)

kopf.test("an object without an owner is pruned, too", function()
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = "other" } })
    local web = new({ children = { map("b", "other") } })
    kube.patch(web, { spec = { children = kopf.array() } })
    kopf.sleep(1)
    check.equal(kube.get("configmaps", { name = "b", namespace = "other" }), nil)
end)

kopf.test("a mistake prunes nothing", function()
    local web = new({ children = { map("a"), map("b") } })
    for _, mistake in { { map("a"), 5 }, { map("a"), map("a") }, { map("a"), { kind = "Secret" } } } do
        kube.patch(web, { spec = { children = mistake } })
        kopf.sleep(1)
        check.equal(#kube.list("configmaps", { label_selector = "kopf.dev/parent" }), 2)
    end
    kube.patch(web, { spec = { children = { map("a") } } })
    kopf.sleep(1)
    check.equal(#kube.list("configmaps", { label_selector = "kopf.dev/parent" }), 1)
end)

kopf.test("an object of somebody else stays as it is", function()
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { x = "mine" } })
    local web = new({ children = { map("a"), map("b") } })
    kopf.sleep(60)
    check.equal(kube.get("configmaps", { name = "a" }).data.x, "mine")
    kube.delete(kube.get("configmaps", { name = "a" }))
    kopf.sleep(60)
    check.equal(kube.get("configmaps", { name = "a" }).data.x, "1")
    kube.delete(web)
end)

kopf.test("children are repaired at once", function()
    new({ children = { map("a") } })
    local a = kube.get("configmaps", { name = "a" })
    kube.patch(a, { data = { x = "2", y = "of others" } })
    kopf.sleep(1)
    check.equal(kube.get(a).data, { x = "1", y = "of others" })
    kube.delete(a)
    kopf.sleep(1)
    check.equal(kube.get("configmaps", { name = "a" }).data.x, "1")
end)

kopf.test("the function is called again after `requeue`, and after `resync` at the latest", { timeout = "1d" }, function()
    local web = new({ children = {}, requeue = "10m" })
    local calls = kube.get(web).status.calls
    kopf.sleep("61m")
    check.equal(kube.get(web).status.calls, calls + 6)
    kube.patch(web, { spec = { requeue = kopf.null } })
    kopf.sleep(1)
    calls = kube.get(web).status.calls
    kopf.sleep("150m")
    check.equal(kube.get(web).status.calls, calls + 2)
end)

kopf.test("a child that is changed again and again slows the calls down", function()
    new({ children = { map("a") } })
    for number = 1, 120 do
        kube.patch({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }, { data = { x = `x{number}` } })
        kopf.sleep(0.5)
    end
    kopf.sleep(100)
    check.equal(kube.get("configmaps", { name = "a" }).data.x, "1")
    check.that(kube.get("webs", { name = "one" }).status.calls < 80)
end)

kopf.test("event handlers see only objects with a parent, and the parent", function()
    kube.create(map("other"))
    new({ children = { map("a") } })
    check.equal(kube.get("configmaps", { name = "a" }).metadata.annotations.parent, "one")
    check.equal(kube.get("configmaps", { name = "other" }).metadata.annotations, nil)
end)
