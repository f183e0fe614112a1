local function pod(name, annotations)
    annotations["ports.example.com/setup"] = "make"
    return kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = name, annotations = annotations },
        spec = { containers = { { name = "main", image = "registry.k8s.io/pause" } } },
    })
end

local function output(name)
    return kube.get("pods", { name = name }).metadata.annotations["ports.example.com/setup-output"]
end

kopf.test("the command runs once the pod is ready", function()
    pod("good", { ["dev.kopf/exec-stdout"] = "done\n" })
    kopf.sleep("10s")
    check.equal(output("good"), "done")
end)

kopf.test("a command that fails is repeated", function()
    local made = pod("bad", { ["dev.kopf/exec-code"] = "1", ["dev.kopf/exec-stderr"] = "no disk" })
    kopf.sleep("15s")
    check.equal(output("bad"), nil)
    kube.patch(made, { metadata = { annotations = { ["dev.kopf/exec-code"] = "0", ["dev.kopf/exec-stdout"] = "late" } } })
    kopf.sleep("30s")
    check.equal(output("bad"), "late")
end)
