-- A Tenant is a namespace with a quota, administrators and a network policy.
--
-- `parts` returns the desired objects, `provision` applies them. `provision` can be called at any time and any number of times: for
-- creation, changes, restarts and repairs.

local TENANT = "tenancy.example.com/tenant" -- the label of objects that belong to a tenant
local APPLIED = { field_manager = "namespace-provisioner", force = true }

local function is_ours(ctx, namespace)
    local labels = namespace.metadata.labels
    return labels ~= nil and labels[TENANT] == ctx.name
end

-- Returns the objects in the namespace, by purpose.
local function parts(ctx)
    local function part(apiVersion, kind, name, content)
        content.apiVersion, content.kind = apiVersion, kind
        content.metadata = { name = name, namespace = ctx.name, labels = { [TENANT] = ctx.name } }
        return content
    end
    local admins = kopf.array()
    for _, user in ctx.spec.admins or {} do
        table.insert(admins, { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user })
    end
    return {
        quota = part("v1", "ResourceQuota", "tenant", { spec = { hard = ctx.spec.quota or {} } }),
        admins = part("rbac.authorization.k8s.io/v1", "RoleBinding", "tenant-admins", {
            roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "admin" },
            subjects = admins,
        }),
        walls = part("networking.k8s.io/v1", "NetworkPolicy", "tenant-walls", {
            spec = {
                podSelector = {},
                policyTypes = { "Ingress" },
                ingress = { { from = { { podSelector = {} } } } }, -- from pods of the same namespace only
            },
        }),
    }
end

local function make(ctx)
    kube.apply({
        apiVersion = "v1",
        kind = "Namespace",
        metadata = { name = ctx.name, labels = { [TENANT] = ctx.name } },
    }, APPLIED)
    local all = parts(ctx)
    kube.apply(all.quota, APPLIED)
    kube.apply(all.admins, APPLIED)
    if ctx.spec.isolated == false then
        kube.delete(all.walls)
    else
        kube.apply(all.walls, APPLIED)
    end
end

function provision(ctx)
    -- Do not change a namespace that existed before.
    local namespace = kube.get("namespaces", { name = ctx.name })
    if namespace and not is_ours(ctx, namespace) then
        ctx.conditions:set("Ready", false, "NamespaceTaken", `the namespace {ctx.name} belongs to somebody else`)
        kopf.retry(`the namespace {ctx.name} belongs to somebody else`, 60)
    end
    local done, problem = pcall(make, ctx)
    if not done then
        ctx.conditions:set("Ready", false, "ProvisioningFailed", tostring(problem))
        error(problem, 0) -- the handler is retried
    end
    ctx.patch.status.namespace = ctx.name
    ctx.conditions:set("Ready", true, "Provisioned", "all is as it should be")
end

-- Holds the Tenant until its namespace is deleted, with all objects in it.
function release(ctx)
    local namespace = kube.get("namespaces", { name = ctx.name })
    if not namespace or not is_ours(ctx, namespace) then
        return
    end
    kube.delete(namespace)
    ctx.conditions:set("Ready", false, "Deleting", "the namespace is being deleted")
    kopf.retry("the namespace is not gone yet", 2)
end

kopf.on_create("tenants", provision)
kopf.on_update("tenants", provision)
kopf.on_resume("tenants", provision)
kopf.on_delete("tenants", release)
-- Reverts manual changes and deletions.
kopf.timer("tenants", { id = "repair", interval = 30, initial_delay = 30 }, provision)
