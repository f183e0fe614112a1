-- The handlers of the simulation, the same as in natives.rs.

local function report(ctx, what, id, more)
    ctx.logger:info(`SIM {what} {id} {ctx.spec.id}{more or ""}`)
end

local function begin(ctx, id)
    report(ctx, "begin", id, ` {ctx.spec.x} {ctx.retry}`)
end

local function result(ctx)
    return { uid = ctx.spec.id, x = ctx.spec.x }
end

local function create_child(ctx, id)
    local child = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = `child-{ctx.spec.id}` } }
    local is_created, problem = pcall(kube.create, child)
    if not is_created and not string.find(tostring(problem), "already exists", 1, true) then
        report(ctx, "rejected", id)
        error(problem)
    end
end

local function work(ctx, id)
    begin(ctx, id)
    if ctx.spec.naps[id] > 0 then
        kopf.sleep(ctx.spec.naps[id])
    end
    if ctx.retry < (ctx.spec.failures[id] or 0) then
        report(ctx, "later", id)
        kopf.retry("not yet", 2)
    end
    if id == "made" then
        create_child(ctx, id)
    end
    report(ctx, "done", id)
    return result(ctx)
end

kopf.on_create("kopfexamples", { id = "made" }, function(ctx) return work(ctx, "made") end)
kopf.on_create("kopfexamples", { id = "retried" }, function(ctx) return work(ctx, "retried") end)
kopf.on_create("kopfexamples", { id = "parent" }, function(ctx)
    begin(ctx, "parent")
    kopf.subhandler({ id = "one" }, function(sub) return work(sub, "parent.one") end)
    kopf.subhandler({ id = "two" }, function(sub) return work(sub, "parent.two") end)
    report(ctx, "done", "parent")
    return result(ctx)
end)
kopf.on_create("kopfexamples", { id = "marked" }, function(ctx)
    local uid = ctx.spec.id
    ctx.patch.fns:append(function(body)
        body.status = body.status or {}
        body.status.mark = uid
    end)
    return work(ctx, "marked")
end)
kopf.on_update("kopfexamples", { id = "changed" }, function(ctx) return work(ctx, "changed") end)
kopf.on_update("kopfexamples", { id = "also" }, function(ctx) return work(ctx, "also") end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx) work(ctx, "gone") end)

kopf.daemon("kopfexamples", { id = "once" }, function(ctx)
    begin(ctx, "once")
    ctx.conditions:set("Watched", true, "Once", ctx.spec.id)
    report(ctx, "done", "once")
end)
kopf.daemon("kopfexamples", { id = "stays" }, function(ctx)
    local _code = CODE
    begin(ctx, "stays")
    ctx.stopped:wait()
    report(ctx, "done", "stays")
end)
kopf.timer("kopfexamples", { id = "tick", interval = 30 }, function(ctx)
    begin(ctx, "tick")
    report(ctx, "done", "tick")
    return result(ctx)
end)
