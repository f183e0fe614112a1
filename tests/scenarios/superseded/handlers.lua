-- What happens to unfinished handlers when something else happens to the object.

local function fails(id)
    return function(ctx)
        ctx.logger:info(`{id}, because of {ctx.reason}, attempt {ctx.retry}, size {ctx.spec.size}`)
        kopf.retry("not yet", 100)
    end
end

local function works(id)
    return function(ctx)
        ctx.logger:info(`{id}, because of {ctx.reason}, size {ctx.spec.size}`)
    end
end

kopf.on_create("kopfexamples", { id = "create-first" }, works("create-first"))
kopf.on_create("kopfexamples", { id = "create-second", labels = { stuck = "create" } }, fails("create-second"))
kopf.on_update("kopfexamples", { id = "update-first", labels = { stuck = "update" } }, fails("update-first"))
kopf.on_update("kopfexamples", { id = "update-second" }, works("update-second"))
kopf.on_delete("kopfexamples", { id = "delete" }, works("delete"))
