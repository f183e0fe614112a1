-- Deletes objects after their time to live: those with an annotation such as `ttl: 2h`.

local KINDS = { "configmaps", "pods", "jobs.batch" }
local INTERVAL = 10 -- seconds between two checks of an object
local DRY_RUN = false -- true: only log what would be deleted

function clean(ctx)
    local ttl = ctx.annotations.ttl
    local understood, seconds = pcall(time.duration, ttl)
    if not understood then
        -- Report this once for each value, not at each check.
        if ctx.memo.refused ~= ttl then
            ctx.memo.refused = ttl
            kopf.warn(ctx.body, "InvalidTTL", `the annotation ttl is a duration such as "90s", "2h" or "7d", not "{ttl}"`)
            ctx.logger:warning(`The annotation ttl is not a duration: {ttl}`)
        end
        return
    end
    if time.since(ctx.meta.creationTimestamp) < seconds then
        return
    end
    if ctx.param.dry_run then
        ctx.logger:info(`Would be deleted: its time to live, {ttl}, is over.`)
        return
    end
    ctx.logger:info(`Deleted: its time to live, {ttl}, is over.`)
    -- Delete only this object, not a new one with the same name.
    kube.delete(ctx.body, { uid = ctx.uid, propagation = "Background" })
end

for _, kind in KINDS do
    kopf.timer(kind, {
        annotations = { ttl = kopf.PRESENT },
        interval = INTERVAL,
        param = { dry_run = DRY_RUN },
    }, clean)
end
