-- The same steps as on a real API server.

local EXAMPLE = { apiVersion = "kopf.dev/v1", kind = "KopfExample", metadata = { name = "one" } }

local function create(spec)
    return kube.create({
        apiVersion = "kopf.dev/v1",
        kind = "KopfExample",
        metadata = { name = "one" },
        spec = spec,
    })
end

local function edit(spec)
    kube.patch(EXAMPLE, { spec = spec })
    kopf.sleep(6)
end

local function has(name)
    return kube.get("configmaps", { name = name }) ~= nil
end

local function status()
    return kube.get(EXAMPLE).status
end

kopf.test("children, their events, the status and conditions", function()
    create({ value = "1" })
    kopf.sleep(1)
    check.equal(kube.get("configmaps", { name = "first" }).data.value, "1")
    check.equal(kube.get("services", { name = "second" }).spec.ports[1].port, 80)
    check.equal(status().value, "1")
    check.equal(status().conditions[1].status, "True")
    check.equal(status().conditions[1].reason, "Seen")
    check.equal(has("parent-of-first-is-one"), true)
    check.equal(has("owner-of-second-is-one"), true)
    kube.patch(kube.get("configmaps", { name = "first" }), { data = { value = "drifted" } })
    kopf.sleep(1)
    check.equal(kube.get("configmaps", { name = "first" }).data.value, "1")
end)

kopf.test("a watched object calls the function, and so does the end of resync and requeue", function()
    create({ value = "1" })
    kopf.sleep(1)
    check.equal(status().secret, false)
    local metadata = { name = "secret", labels = { parent = "one" } }
    kube.create({ apiVersion = "v1", kind = "Secret", metadata = metadata })
    kopf.sleep(1)
    check.equal(status().secret, true)
    kopf.sleep(8)
    check.equal(status().calls, 3)
    edit({ mode = "requeue" })
    check.equal(status().count, 3)
end)

kopf.test("nil changes nothing, no children deletes all, errors delete none", function()
    create({ value = "1" })
    kopf.sleep(1)
    edit({ mode = "nil" })
    check.equal(has("called-for-nil"), true)
    check.equal(has("first"), true)
    edit({ mode = "fail" })
    check.equal(has("called-for-fail"), true)
    check.equal(has("first"), true)
    edit({ mode = "prune" })
    check.equal(has("first"), false)
    edit({ mode = "retry" })
    check.equal(has("first"), true)
end)

kopf.test("a deletion waits for finalize", function()
    create({ value = "1" })
    kopf.sleep(1)
    kube.delete(EXAMPLE)
    kopf.sleep(0.5)
    check.equal(has("finalized"), false)
    check.equal(kube.get(EXAMPLE) == nil, false)
    kopf.sleep(2)
    check.equal(has("finalized"), true)
    check.equal(kube.get(EXAMPLE), nil)
end)

kopf.test("schedules run at their times", { timeout = "10m" }, function()
    create({ value = "1", schedule = "* * * * *" })
    kopf.sleep("130s")
    for _, name in { "often", "sharp-0", "minute-00", "timer", "timer-of-its-own" } do
        check.equal(has(name), true)
    end
end)

kopf.test("locks return results, name their holder, and are shared by the scripts", function()
    create({ value = "1" })
    kopf.sleep(4)
    for _, name in { "lock-result", "holder-is-named", "lock-of-an-object" } do
        check.equal(has(name), true)
    end
end)
