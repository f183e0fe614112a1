local function new_pod(name, image, labels)
    return kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = name, labels = labels or { team = "a" } },
        spec = { containers = { { name = "main", image = image or "registry.k8s.io/pause" } } },
    })
end

kopf.test("images of other registries are denied", function()
    local ok, problem = pcall(new_pod, "one", "docker.io/evil")
    check.that(not ok)
    check.equal(problem.status, 403)
    check.that(strings.contains(problem.message, "docker.io/evil is not from an allowed registry"))
end)

kopf.test("containers without resources get the default ones", function()
    check.equal(new_pod("one").spec.containers[1].resources.limits.memory, "256Mi")
end)

kopf.test("a team has at most three pods", function()
    for _, name in { "one", "two", "three" } do
        new_pod(name)
    end
    kopf.sleep(1)
    local ok, problem = pcall(new_pod, "four")
    check.that(not ok)
    check.that(strings.contains(problem.message, "team a has 3 pods already"))
    new_pod("other", nil, { team = "b" })
end)
