-- The life of the object of the examples, next to a pod: of all examples without tests of their own.

local function pod(name)
    return {
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = name, labels = { app = name, application = "kopf-example-10" } },
        spec = { containers = { { name = "main", image = "busybox" } } },
    }
end

kopf.test("an object is created, changed and deleted", { timeout = "30m" }, function()
    kube.create(pod("first"))
    local object = kube.create({
        apiVersion = "kopf.dev/v1",
        kind = "KopfExample",
        metadata = {
            name = "kopf-example-1",
            labels = { somelabel = "somevalue" },
            annotations = { someannotation = "somevalue" },
        },
        spec = { duration = "1m", field = "value", items = { "item1", "item2" } },
    })
    kopf.sleep("3m")
    kube.patch(object, { spec = { field = "changed", lst = { 1, 2 } } })
    kopf.sleep("3m")
    kube.delete(object)
    kube.delete(pod("first"), { missing_ok = true })
    kopf.sleep("3m")
    check.equal(kube.get(object), nil)
end)
