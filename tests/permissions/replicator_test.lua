-- Sources of both kinds are copied, changed, withdrawn and deleted.

local TO = "replicator.example.com/to"

local function source(kind, name)
    return {
        apiVersion = "v1",
        kind = kind,
        metadata = { name = name, annotations = { [TO] = "red, blue" } },
        data = { key = "MTIzNA==" },
    }
end

local function space(name)
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
end

kopf.test("copies follow their sources", { timeout = "2h" }, function()
    space("red")
    -- One that belongs to somebody else.
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "taken", namespace = "red" } })
    local all = {}
    for _, kind in { "Secret", "ConfigMap" } do
        for _, name in { "first", "second", "taken" } do
            table.insert(all, kube.create(source(kind, name)))
        end
    end
    kopf.sleep("3m")
    space("blue")
    kopf.sleep("3m")
    for _, it in all do
        kube.patch(it, { data = { key = "NTY3OA==" } })
    end
    kopf.sleep("3m")
    check.equal(kube.get("secrets", { name = "first", namespace = "blue" }).data.key, "NTY3OA==")
    kube.patch(all[1], { metadata = { annotations = { [TO] = "red" } } })
    kube.patch(all[4], { metadata = { annotations = { [TO] = kopf.null } } })
    kopf.sleep("3m")
    for _, it in all do
        kube.delete(it)
    end
    kopf.sleep("3m")
    check.equal(kube.get("secrets", { name = "second", namespace = "red" }), nil)
    check.equal(kube.get("configmaps", { name = "second", namespace = "red" }), nil)
end)
