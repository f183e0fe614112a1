-- Every cause in the life of an object, and what is called for it.

local function told(name)
    return function(ctx)
        ctx.logger:info(`{name}, because of {ctx.reason}: {ctx.diff}`)
    end
end

-- Declared twice, it is called once: an object that is new is not resumed.
function first_seen_fn(ctx)
    ctx.logger:info(`first seen, because of {ctx.reason}`)
end

function event_fn(ctx)
    ctx.logger:info(`event {ctx.type or "listed"} of {ctx.event.object.metadata.name}`)
end

function delete_fn(ctx)
    ctx.logger:info(`held by {ctx.meta.finalizers}`)
    if ctx.retry == 0 then
        kopf.retry("not yet", 2)
    end
end

kopf.on_event("kopfexamples", event_fn)
kopf.on_create("kopfexamples", { id = "create" }, told("create"))
kopf.on_create("kopfexamples", first_seen_fn)
kopf.on_resume("kopfexamples", first_seen_fn)
kopf.on_resume("kopfexamples", { id = "resume" }, told("resume"))
kopf.on_resume("kopfexamples", { id = "resume-deleted", deleted = true }, told("resume-deleted"))
kopf.on_update("kopfexamples", { id = "update" }, told("update"))
kopf.on_field("kopfexamples", { id = "field", field = "spec.size" }, told("field"))
kopf.on_delete("kopfexamples", delete_fn)
