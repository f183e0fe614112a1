local function new_web()
    local web = kube.create({
        apiVersion = "example.com/v1",
        kind = "BlueGreen",
        metadata = { name = "web" },
        spec = { image = "web:1", replicas = 2 },
    })
    kopf.sleep(0.2)
    return web
end

-- The images and replicas of both colors, as far as they exist.
local function sets()
    local found = {}
    for _, it in kube.list("replicasets") do
        local color = it.metadata.labels.color
        found[color] = `{it.spec.template.spec.containers[1].image} {it.spec.replicas}`
    end
    return found
end

local function served()
    return kube.get("services", { name = "web" }).spec.selector.color
end

kopf.test("the first version is blue", function()
    local web = new_web()
    check.equal(sets(), { blue = "web:1 2" })
    check.equal(served(), "blue")
    kopf.sleep("1m")
    check.equal(kube.get(web).status.conditions[1].status, "True")
end)

kopf.test("the Service is switched when the new version is ready, and the old one loses its pods", function()
    local web = new_web()
    kopf.sleep("1m")
    kube.patch(web, { spec = { image = "web:2" } })
    kopf.sleep(0.2)
    check.equal(sets(), { blue = "web:1 2", green = "web:2 2" })
    check.equal(served(), "blue")
    kopf.sleep("1m")
    check.equal(sets(), { blue = "web:1 0", green = "web:2 2" })
    check.equal(served(), "green")
    check.equal(kube.get(web).status.active, "green")
end)

kopf.test("the next version is blue again", function()
    local web = new_web()
    kopf.sleep("1m")
    kube.patch(web, { spec = { image = "web:2" } })
    kopf.sleep(0.2)
    kopf.sleep("1m")
    kube.patch(web, { spec = { image = "web:3" } })
    kopf.sleep(0.2)
    check.equal(sets(), { blue = "web:3 2", green = "web:2 2" })
    kopf.sleep("1m")
    check.equal(sets(), { blue = "web:3 2", green = "web:2 0" })
    check.equal(served(), "blue")
end)
