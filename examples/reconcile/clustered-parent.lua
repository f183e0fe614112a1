-- A RoleBinding of the default ServiceAccount of a namespace for each ClusterRole with the annotation
-- `example.com/bind-default-account-in`, which names the namespace. Metacontroller's sample ClusteredParent, written from its description:
-- the parent belongs to no namespace, its children do.

local NAMESPACE = "example.com/bind-default-account-in"

local function binding(ctx, namespace)
    return {
        apiVersion = "rbac.authorization.k8s.io/v1",
        kind = "RoleBinding",
        metadata = { name = ctx.name, namespace = namespace },
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = ctx.name },
        subjects = { { kind = "ServiceAccount", name = "default", namespace = namespace } },
    }
end

kopf.reconcile("clusterroles", { id = "clustered-parent", owns = "rolebindings.rbac.authorization.k8s.io" }, function(ctx)
    local namespace = ctx.annotations[NAMESPACE]
    -- Without the annotation, there is none: that from before is deleted.
    return { children = if namespace then { binding(ctx, namespace) } else {} }
end)
