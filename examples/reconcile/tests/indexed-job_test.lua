local function new_job(parallelism)
    return kube.create({
        apiVersion = "example.com/v1",
        kind = "IndexedJob",
        metadata = { name = "sum" },
        spec = { completions = 3, parallelism = parallelism, image = "sum:1" },
    })
end

local function names()
    local found = {}
    for _, it in kube.list("pods") do
        table.insert(found, it.metadata.name)
    end
    table.sort(found)
    return found
end

-- Ends a pod as a kubelet does.
local function finish(index, phase)
    local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = `sum-{index}` } }
    kube.patch(pod, { status = { phase = phase } }, { subresource = "status" })
    kopf.sleep(5)
end

kopf.test("at most `parallelism` pods run at a time", function()
    local job = new_job(2)
    kopf.sleep(0.2)
    check.equal(names(), { "sum-0", "sum-1" })
    check.equal(kube.get(job).status.active, 2)
    finish(1, "Succeeded")
    check.equal(names(), { "sum-0", "sum-1", "sum-2" })
end)

kopf.test("each pod knows its index", function()
    new_job(3)
    kopf.sleep(0.2)
    local pod = kube.get("pods", { name = "sum-2" })
    check.equal(pod.spec.containers[1].env[1].value, "2")
end)

kopf.test("the job is complete when all pods have succeeded", function()
    local job = new_job(3)
    kopf.sleep(0.2)
    check.equal(kube.get(job).status.conditions[1].status, "False")
    for index = 0, 2 do
        finish(index, "Succeeded")
    end
    job = kube.get(job)
    check.equal(job.status.conditions[1].status, "True")
    check.equal(job.status.succeeded, 3)
end)
