local function new_set(replicas)
    return kube.create({
        apiVersion = "example.com/v1",
        kind = "CatSet",
        metadata = { name = "nine" },
        spec = { replicas = replicas, image = "cats:1" },
    })
end

local function names(kind)
    local found = {}
    for _, it in kube.list(kind) do
        table.insert(found, it.metadata.name)
    end
    table.sort(found)
    return found
end

kopf.test("pods are created one after another, each with its volume", function()
    local set = new_set(3)
    kopf.sleep(0.2)
    check.equal(names("pods"), { "nine-0" })
    kopf.sleep(10)
    check.equal(names("pods"), { "nine-0", "nine-1", "nine-2" })
    check.equal(names("pvc"), { "data-nine-0", "data-nine-1", "data-nine-2" })
    set = kube.get(set)
    check.equal(set.status.readyReplicas, 3)
    check.equal(set.status.conditions[1].status, "True")
end)

kopf.test("the last pod is deleted first", function()
    local set = new_set(2)
    kopf.sleep(10)
    kube.patch(set, { spec = { replicas = 1 } })
    kopf.sleep(10)
    check.equal(names("pods"), { "nine-0" })
end)

kopf.test("a deleted pod comes back", function()
    new_set(2)
    kopf.sleep(10)
    local uid = kube.get("pods", { name = "nine-1" }).metadata.uid
    kube.delete({ apiVersion = "v1", kind = "Pod", metadata = { name = "nine-0" } })
    kopf.sleep(10)
    check.equal(names("pods"), { "nine-0", "nine-1" })
    check.equal(kube.get("pods", { name = "nine-1" }).metadata.uid, uid)
end)

kopf.test("a pod of somebody else is not taken over", function()
    kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = "nine-0" },
        spec = { containers = { { name = "main", image = "dogs:1" } } },
    })
    new_set(1)
    kopf.sleep(10)
    local pod = kube.get("pods", { name = "nine-0" })
    check.equal(pod.spec.containers[1].image, "dogs:1")
    check.equal(pod.metadata.ownerReferences, nil)
end)
