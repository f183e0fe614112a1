-- The handlers of worlds with children and schedules, the same as in natives.rs.

local function report(ctx, what, id)
    ctx.logger:info(`SIM {what} {id} {ctx.spec.id}`)
end

-- Works for a while, and fails a few times.
local function work(ctx, id, nap, failures)
    report(ctx, "begin", id)
    if ctx.spec.naps[nap] > 0 then
        kopf.sleep(ctx.spec.naps[nap])
    end
    if ctx.retry < (ctx.spec.failures[failures] or 0) then
        report(ctx, "later", id)
        kopf.retry("not yet", 2)
    end
    report(ctx, "end", id)
end

local function child(ctx, namespace, name)
    local tune = kube.get("secrets", { name = "tune", namespace = ctx.namespace })
    return {
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { namespace = namespace, name = name },
        data = { x = tostring(ctx.spec.x), tune = tune.metadata.labels.v },
    }
end

local function finalize(ctx)
    work(ctx, "finalize", "gone", "gone")
end

kopf.reconcile("kopfexamples", { id = "family", owns = "configmaps", watches = { "secrets" }, finalize = finalize }, function(ctx)
    local _code = CODE
    work(ctx, "reconcile", "made", "retried")
    local children, seen = {}, 0
    for number = 0, ctx.spec.x % 4 - 1 do
        table.insert(children, child(ctx, ctx.namespace, `{ctx.name}-{number}`))
    end
    table.insert(children, child(ctx, "ns2", `far-{ctx.spec.id}`))
    for _ in ctx.children.configmaps do
        seen += 1
    end
    return { children = children, status = { x = ctx.spec.x, uid = ctx.spec.id, seen = seen } }
end)

local function scheduled(id)
    return function(ctx)
        ctx.logger:info(`SIM slot {id} {ctx.scheduled}`)
        kopf.sleep(0.7)
    end
end

kopf.every(15, { id = "often" }, scheduled("often"))
kopf.cron("* * * * *", { id = "minute" }, scheduled("minute"))
