local function create(version, spec)
    return kube.create({
        apiVersion = `example.com/{version}`,
        kind = "Route",
        metadata = { name = "shop" },
        spec = spec,
    })
end

local function get(version)
    return kube.get(`example.com/{version}`, "routes", { name = "shop" })
end

kopf.test("objects of v1alpha1 are handled as v1", function()
    create("v1alpha1", { address = "shop.example.com:8080" })
    local route = get("v1")
    check.equal(route.spec.host, "shop.example.com")
    check.equal(route.spec.port, 8080)
    kopf.sleep(1)
    check.equal(get("v1alpha1").status.url, "http://shop.example.com:8080")
end)

kopf.test("what only v1 has survives an edit through v1alpha1", function()
    create("v1", { host = "shop.example.com", port = 443, tls = true })
    local old = get("v1alpha1")
    check.equal(old.spec.address, "shop.example.com:443")
    kube.patch(old, { spec = { address = "shop.example.com:8443" } })
    local route = get("v1")
    check.equal(route.spec.port, 8443)
    check.equal(route.spec.tls, true)
    check.equal(route.metadata.annotations["example.com/tls"], nil)
end)
