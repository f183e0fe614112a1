-- Objects that no handler asks for are left alone; those that come into view are new.

local function told(name)
    return function(ctx)
        ctx.logger:info(`{name}, because of {ctx.reason}`)
    end
end

kopf.on_create("kopfexamples", { id = "create", labels = { mine = "yes" } }, told("create"))
kopf.on_update("kopfexamples", { id = "update", labels = { mine = "yes" } }, told("update"))
kopf.on_delete("kopfexamples", { id = "delete", labels = { mine = "yes" } }, told("delete"))
