local function new_set(annotations)
    local labels = { app = "db" }
    local set = kube.create({
        apiVersion = "apps/v1",
        kind = "StatefulSet",
        metadata = { name = "db", annotations = annotations },
        spec = {
            replicas = 2,
            selector = { matchLabels = labels },
            template = { metadata = { labels = labels }, spec = { containers = { { name = "main", image = "db:1" } } } },
        },
    })
    kopf.sleep(1)
    return set
end

local function services()
    local found = {}
    for _, it in kube.list("services") do
        if it.metadata.name ~= "kubernetes" then
            table.insert(found, it.metadata.name)
        end
    end
    table.sort(found)
    return found
end

kopf.test("each pod has a Service with the ports of the annotation", function()
    new_set({ ["example.com/ports"] = "80:8080,443" })
    check.equal(services(), { "db-0", "db-1" })
    local spec = kube.get("services", { name = "db-1" }).spec
    check.equal(spec.selector["statefulset.kubernetes.io/pod-name"], "db-1")
    check.equal({ spec.ports[1].port, spec.ports[1].targetPort }, { 80, 8080 })
    check.equal({ spec.ports[2].port, spec.ports[2].targetPort }, { 443, 443 })
end)

kopf.test("Services follow the number of replicas and the annotation", function()
    local set = new_set({ ["example.com/ports"] = "80" })
    kube.patch(set, { spec = { replicas = 3 } })
    kopf.sleep(1)
    check.equal(services(), { "db-0", "db-1", "db-2" })
    kube.patch(set, { metadata = { annotations = { ["example.com/ports"] = kopf.null } } })
    kopf.sleep(1)
    check.equal(services(), {})
end)

kopf.test("other sets have none", function()
    new_set({})
    check.equal(services(), {})
end)
