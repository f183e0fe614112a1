-- Handlers wait until all objects are indexed; index functions and activities do not.

-- Only one object is handled: the order of several at one moment is nobody's business.
local READS = { reads = kopf.PRESENT }

function names(ctx)
    return { [ctx.resource.plural] = ctx.name }
end

-- Objects are indexed side by side, so their order is nobody's business either.
local function sizes(ctx)
    return #(ctx.names.kopfexamples or {}) .. " and " .. #(ctx.names.configmaps or {})
end

function starts(ctx)
    ctx.logger:info("startup " .. sizes(ctx))
end

function is_peer(ctx)
    return ctx.names["configmaps"] ~= nil
end

function seen(ctx)
    ctx.logger:info("event " .. sizes(ctx))
end

function created(ctx)
    ctx.logger:info("created with " .. #ctx.names["kopfexamples"])
end

function unexpected(ctx)
    ctx.logger:info("unexpected")
end

function has_no_peer(ctx)
    return not is_peer(ctx)
end

function ticks(ctx)
    ctx.logger:info("timer " .. sizes(ctx))
end

function ends(ctx)
    ctx.logger:info("cleanup " .. sizes(ctx))
end

kopf.index("kopfexamples", names)
kopf.index("configmaps", names)
kopf.on_startup(starts)
kopf.on_event("kopfexamples", { labels = READS, when = is_peer }, seen)
kopf.on_create("kopfexamples", { labels = READS, when = is_peer }, created)
kopf.on_create("kopfexamples", { labels = READS, when = has_no_peer }, unexpected)
kopf.timer("kopfexamples", { interval = 15, initial_delay = 5, labels = READS, when = is_peer }, ticks)
kopf.on_cleanup(ends)
