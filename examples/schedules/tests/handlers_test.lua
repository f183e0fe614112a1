local function config(name, schedule)
    return kube.create({
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = name, labels = { copies = "yes" } },
        data = { schedule = schedule },
    })
end

local function found(name)
    return kube.get("configmaps", { name = name })
end

kopf.test("failed pods are deleted within 15 minutes", { timeout = "1d" }, function()
    local pod = kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = "broken" },
        spec = { containers = { { name = "main", image = "registry.k8s.io/pause" } } },
    })
    kube.patch(pod, { status = { phase = "Failed" } }, { subresource = "status" })
    kopf.sleep("16m")
    check.equal(kube.get("pods", { name = "broken" }), nil)
end)

kopf.test("the report is written at three, in Berlin", { timeout = "1d" }, function()
    kopf.sleep("3h")
    check.equal(found("report").data.planned, "2030-01-01T02:00:00Z")
end)

kopf.test("each object is copied at its own times, under numbers of its own", { timeout = "1d" }, function()
    config("hourly", "0 * * * *")
    config("also-hourly", "0 * * * *")
    config("never", nil)
    kopf.sleep("61m")
    local numbers = lists.filter(kube.list("configmaps"), function(it) return strings.contains(it.metadata.name, "hourly-") end)
    check.equal(#numbers, 2)
    check.equal(found("numbers").data.next, "3")
    check.equal(kube.get("configmaps", { name = "hourly" }).metadata.finalizers, nil)
end)
