-- A field of the status that handlers ask for is a part of what may change.

local function told(name)
    return function(ctx)
        ctx.logger:info(`{name}: {ctx.old or "absent"} to {ctx.new or "absent"}`)
    end
end

kopf.on_field("kopfexamples", { id = "phase", field = "status.phase" }, told("phase"))
kopf.on_update("kopfexamples", { id = "update" }, function(ctx)
    ctx.logger:info(`update: {ctx.diff}`)
end)
