-- One of two changes is against the rules of Kubernetes.
function create_fn(ctx)
    ctx.conditions:set("Seen", true)
    ctx.patch.fns:append(function(body)
        body.metadata.labels = body.metadata.labels or {}
        body.metadata.labels.wrong = "no label at all!"
    end)
    ctx.patch.fns:append(function(body)
        body.metadata.labels = body.metadata.labels or {}
        body.metadata.labels.right = "yes"
    end)
    return "done"
end

kopf.on_create("kopfexamples", create_fn)
