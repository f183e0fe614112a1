-- Deletion handlers that do not hold the object.

local function told(name)
    return function(ctx)
        ctx.logger:info(`{name}, held by {ctx.meta.finalizers}`)
    end
end

kopf.on_delete("kopfexamples", { id = "optional", optional = true }, told("optional"))
kopf.on_delete("kopfexamples", { id = "mandatory", labels = { hold = "yes" } }, told("mandatory"))
