local QUOTA = [[
apiVersion: v1
kind: ResourceQuota
metadata:
  name: quota
spec:
  hard:
    pods: "{{ 20 if 'admins' in groups else 5 }}"
]]
local MAPS = [[
{% for group in groups %}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ group | dns_label }}
data:
  user: {{ user | quote }}
{% endfor %}
]]

local function config(resources)
    kube.create({
        apiVersion = "example.com/v1",
        kind = "UserNamespaceConfig",
        metadata = { name = "default" },
        spec = { namespace = "user-{{ user | dns_label }}", resources = resources },
    })
end

local function user(groups)
    return kube.create({
        apiVersion = "example.com/v1",
        kind = "UserNamespace",
        metadata = { name = "ann" },
        spec = { user = "Ann@Example.com", config = "default", groups = groups },
    })
end

kopf.test("a user gets a namespace with what the templates say", function()
    config({ QUOTA, MAPS })
    local ann = user({ "admins", "Web Team" })
    kopf.sleep(5)
    check.equal(kube.get(ann).status.namespace, "user-ann-example-com")
    check.equal(kube.get(ann).status.resources, 3)
    local quota = kube.get("resourcequotas", { name = "quota", namespace = "user-ann-example-com" })
    check.equal(quota.spec.hard.pods, "20")
    local map = kube.get("configmaps", { name = "web-team", namespace = "user-ann-example-com" })
    check.equal(map.data.user, "Ann@Example.com")
    kube.delete(ann)
    kopf.sleep(5)
    check.equal(kube.get(ann), nil)
    check.equal(kube.get("namespaces", { name = "user-ann-example-com" }), nil)
end)

kopf.test("a change of the user renders the templates again", function()
    config({ QUOTA })
    local ann = user({ "admins" })
    kopf.sleep(5)
    kube.patch(ann, { spec = { groups = kopf.null } })
    kopf.sleep(5)
    local quota = kube.get("resourcequotas", { name = "quota", namespace = "user-ann-example-com" })
    check.equal(quota.spec.hard.pods, "5")
end)

kopf.test("a hostile template fails its own object only", function()
    config({ "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}" })
    local ann = user({ "admins" })
    kopf.sleep(5)
    check.equal(kube.get(ann).status, nil)
    check.equal(#kube.list("usernamespaces.example.com"), 1)
end)
