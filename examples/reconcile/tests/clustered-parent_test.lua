local NAMESPACE = "example.com/bind-default-account-in"

local function new_role(namespace)
    local role = kube.create({
        apiVersion = "rbac.authorization.k8s.io/v1",
        kind = "ClusterRole",
        metadata = { name = "readers", annotations = { [NAMESPACE] = namespace } },
        rules = { { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } },
    })
    kopf.sleep(1)
    return role
end

local function namespaces()
    local found = {}
    for _, it in kube.list("rolebindings", { namespace = "*" }) do
        table.insert(found, it.metadata.namespace)
    end
    return found
end

kopf.test("the default account of the namespace is bound to the role", function()
    new_role("default")
    local binding = kube.get("rolebindings", { name = "readers", namespace = "default" })
    check.equal(binding.roleRef.name, "readers")
    check.equal(binding.subjects[1].namespace, "default")
    check.equal(binding.metadata.ownerReferences[1].name, "readers")
end)

kopf.test("the binding follows the annotation", function()
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = "other" } })
    local role = new_role("default")
    kube.patch(role, { metadata = { annotations = { [NAMESPACE] = "other" } } })
    kopf.sleep(1)
    check.equal(namespaces(), { "other" })
    kube.patch(role, { metadata = { annotations = { [NAMESPACE] = kopf.null } } })
    kopf.sleep(1)
    check.equal(namespaces(), {})
end)

kopf.test("other roles have none", function()
    new_role(nil)
    check.equal(namespaces(), {})
end)
