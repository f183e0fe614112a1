-- Objects of all kinds are deleted after their time.

local function object(apiVersion, kind, ttl, spec)
    return kube.create({
        apiVersion = apiVersion,
        kind = kind,
        metadata = { name = ttl, annotations = { ttl = ttl } },
        spec = spec,
    })
end

kopf.test("what is old is deleted", { timeout = "2h" }, function()
    local pod = { restartPolicy = "Never", containers = { { name = "main", image = "busybox" } } }
    for _, ttl in { "1m", "soon" } do
        object("v1", "ConfigMap", ttl)
        object("v1", "Pod", ttl, pod)
        object("batch/v1", "Job", ttl, { template = { spec = pod } })
    end
    kopf.sleep("5m")
    for _, kind in { "configmaps", "pods", "jobs.batch" } do
        check.equal(kube.get(kind, { name = "1m" }), nil)
        check.equal(kube.get(kind, { name = "soon" }).metadata.deletionTimestamp, nil)
    end
end)
