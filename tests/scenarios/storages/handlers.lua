-- State in the status of objects, and a move from one storage to another.

function startup_fn(ctx)
    local persistence = ctx.settings.persistence
    persistence.finalizer = "example.com/finalizer"
    persistence.progress_storage = kopf.StatusProgressStorage({ name = "mine" })
    persistence.diffbase_storage = kopf.MultiDiffBaseStorage({
        kopf.StatusDiffBaseStorage({ name = "mine", ignored_fields = { "spec.noise" } }),
        kopf.AnnotationsDiffBaseStorage({ prefix = "old.example.com" }),
    })
end

function create_fn(ctx)
    if ctx.retry == 0 then
        kopf.retry("not yet", 5)
    end
end

function update_fn(ctx)
    ctx.logger:info(`changed: {ctx.diff}`)
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_update("kopfexamples", update_fn)
kopf.on_delete("kopfexamples", { id = "delete" }, function(ctx) end)
