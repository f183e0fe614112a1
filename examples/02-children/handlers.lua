-- A child object: the handler creates a Pod that belongs to the object and is deleted with it.

function create_fn(ctx)
    local pod = kopf.adopt({
        apiVersion = "v1",
        kind = "Pod",
        spec = {
            restartPolicy = "Never",
            containers = {
                {
                    name = "main",
                    image = "busybox",
                    command = { "sh", "-c", `echo "FIELD=$FIELD"; sleep {ctx.spec.duration or 0}` },
                    env = { { name = "FIELD", value = ctx.spec.field } },
                },
            },
        },
    })
    -- `adopt` has set a name that begins with the name of the object, its namespace and labels, and a reference to the owner:
    -- when the object is deleted, Kubernetes deletes the Pod.
    local child = kube.create(pod)
    ctx.logger:info(`Pod {child.metadata.name} is created.`)
    return { children = { child.metadata.uid } } -- is stored in status.create_fn
end

kopf.on_create("kopfexamples", create_fn)
