-- The other script: it reads the index of the first one, and adds to it.

function created(ctx)
    local size = ctx.sizes[ctx.name][1].size
    ctx.logger:info(ctx.name .. " is " .. size .. " of " .. tostring(ctx.sizes))
    ctx.logger:info("more " .. tostring(ctx.sizes.more))
end

function more(ctx)
    return { more = ctx.name }
end

kopf.on_create("kopfexamples", created)
kopf.index("configmaps", { id = "sizes" }, more)
