-- A tenant comes, is opened, and goes; another one has a name that is taken.

local function tenant(name)
    return kube.create({
        apiVersion = "tenancy.example.com/v1",
        kind = "Tenant",
        metadata = { name = name },
        spec = { quota = { pods = "20" }, admins = { "ann@example.com" } },
    })
end

kopf.test("tenants come and go", { timeout = "2h" }, function()
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = "taken" } })
    local own, taken = tenant("own"), tenant("taken")
    kopf.sleep("2m")
    check.equal(kube.get(own).status.namespace, "own")
    kube.patch(own, { spec = { isolated = false } })
    kopf.sleep("2m")
    check.equal(#kube.list("networkpolicies.networking.k8s.io", { namespace = "own" }), 0)
    kube.delete(own)
    kube.delete(taken)
    kopf.sleep("2m")
    check.equal(#kube.list("tenants.tenancy.example.com"), 0)
end)
