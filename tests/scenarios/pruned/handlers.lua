-- A resource with a schema and a status of its own.

function create_fn(ctx)
    ctx.patch.spec.size = ctx.spec.size + 1
    ctx.patch.status.phase = "Ready"
    return { pruned = "by the schema" }
end

function update_fn(ctx)
    ctx.patch.fns:append(function(body)
        body.spec.size = 10
        body.status.phase = "Resized"
    end)
end

kopf.on_create("widgets", create_fn)
kopf.on_update("widgets", { field = "spec.color" }, update_fn)
