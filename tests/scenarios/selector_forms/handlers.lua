-- One function for many selectors, resources of the core, and what was there before the operator.

function seen(ctx)
    ctx.logger:info(`{ctx.resource.plural} {ctx.type or "listed"}`)
end

-- Several of them mean the same resource: the function is called once for each event.
kopf.on_event("kopfexamples", seen)
kopf.on_event("kopfexamples.v1.kopf.dev", seen)
kopf.on_event({ kind = "KopfExample" }, seen)
kopf.on_event({ category = "all", group = "kopf.dev" }, seen)
kopf.on_event(function(resource) return resource.group == "kopf.dev" end, seen)
kopf.on_event("configmaps.v1", seen)
kopf.on_event("kopfexamples.v2.kopf.dev", seen)

local function tell(id)
    return function(ctx)
        ctx.logger:info("found by " .. id)
    end
end

kopf.on_event("v1", "configmaps", { id = "v1" }, tell("v1"))
kopf.on_event("", "v1", "configmaps", { id = "core" }, tell("core"))
kopf.on_event("", "cm", { id = "short" }, tell("short"))
kopf.on_event({ id = "singular", singular = "configmap" }, tell("singular"))
kopf.on_event("v1", kopf.EVERYTHING, { id = "everything", labels = { found = kopf.PRESENT } }, tell("everything"))
kopf.on_event({ id = "version", version = "v1", plural = "configmaps" }, tell("version"))
kopf.on_event("apps", "configmaps", { id = "other" }, tell("other"))
kopf.on_event("ConfigMaps", { id = "wrong-case" }, tell("wrong-case"))
