-- Routes in two versions: `spec.address` of v1alpha1 is `spec.host` and `spec.port` of v1. `spec.tls` exists only in v1; an annotation
-- keeps it while a client works with v1alpha1.

local TLS = "example.com/tls"

kopf.on_convert("routes.example.com", { from = "v1alpha1", to = "v1" }, function(ctx)
    local host, port = ctx.spec.address:match("^(.+):(%d+)$")
    if host == nil then
        error(`spec.address must be HOST:PORT, not {ctx.spec.address}`)
    end
    local object = kopf.copy(ctx.body)
    object.spec = { host = host, port = tonumber(port) }
    local tls = ctx.annotations[TLS]
    if tls ~= nil then
        object.spec.tls = tls == "true"
        object.metadata.annotations[TLS] = nil
        if next(object.metadata.annotations) == nil then
            object.metadata.annotations = nil
        end
    end
    return object
end)

kopf.on_convert("routes.example.com", { from = "v1", to = "v1alpha1" }, function(ctx)
    local object = kopf.copy(ctx.body)
    object.spec = { address = `{ctx.spec.host}:{ctx.spec.port}` }
    if ctx.spec.tls ~= nil then
        object.metadata.annotations = object.metadata.annotations or {}
        object.metadata.annotations[TLS] = tostring(ctx.spec.tls)
    end
    return object
end)

-- The other handlers know v1 only.
kopf.on_create("routes.example.com", { id = "url" }, function(ctx)
    local scheme = if ctx.spec.tls then "https" else "http"
    ctx.patch.status.url = `{scheme}://{ctx.spec.host}:{ctx.spec.port}`
end)
