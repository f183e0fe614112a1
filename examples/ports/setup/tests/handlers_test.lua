local function pod(name)
    return kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = name, annotations = { ["ports.example.com/setup"] = "make" } },
        spec = { containers = { { name = "main", image = "registry.k8s.io/pause" } } },
    })
end

local function output(name)
    return kube.get("pods", { name = name }).metadata.annotations["ports.example.com/setup-output"]
end

kopf.test("the command runs once the pod is ready", function()
    fake.exec(function(call)
        check.equal(call.pod, "good")
        check.equal(call.command, { "sh", "-c", "make" })
        return "done\n"
    end)
    pod("good")
    kopf.sleep("10s")
    check.equal(output("good"), "done")
    check.equal(#fake.calls("exec"), 1)
end)

kopf.test("a command that fails is repeated", function()
    fake.exec(function()
        if #fake.calls("exec") < 3 then
            return { code = 1, stderr = "no disk" }
        end
        return { stdout = "late" }
    end)
    pod("bad")
    kopf.sleep("15s")
    check.equal(output("bad"), nil)
    kopf.sleep("30s")
    check.equal(output("bad"), "late")
    check.equal(#fake.calls("exec"), 3)
end)
