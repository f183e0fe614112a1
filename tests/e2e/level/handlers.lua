-- Each line of what is promised about reconcile handlers, schedules and locks. What has happened is told by ConfigMaps.

local place = nil

local function say(what)
    if place then
        local metadata = { name = what, namespace = place }
        kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = metadata }, { exists_ok = true })
    end
end

local function wanted(ctx)
    local first = {
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = "first" },
        data = { value = ctx.spec.value },
    }
    -- One after another: the second needs the first.
    if not ctx.children.configmaps.first then
        return { first }
    end
    local second = {
        apiVersion = "v1",
        kind = "Service",
        metadata = { name = "second" },
        spec = { ports = { { port = 80 } } },
    }
    return { first, second }
end

kopf.reconcile("kopfexamples", {
    id = "level",
    owns = { "configmaps", "services" },
    watches = { { "secrets", map = function(ctx) return { name = ctx.labels.parent } end } },
    finalize = function(ctx)
        if ctx.retry == 0 then
            kopf.retry("not yet", 1)
        end
        say("finalized")
    end,
}, function(ctx)
    place = ctx.namespace
    local mode = ctx.spec.mode
    if mode == "nil" then
        say("called-for-nil")
        return nil
    elseif mode == "prune" then
        return { children = {} }
    elseif mode == "fail" then
        say("called-for-fail")
        kopf.fail("given up")
    elseif mode == "retry" and ctx.retry < 2 then
        if ctx.retry == 0 then
            kopf.retry("later", 1)
        end
        error("broken")
    elseif mode == "requeue" then
        local count = kopf.get(ctx.status, "count", 0)
        return { status = { count = count + 1 }, requeue = if count < 2 then "1s" else nil }
    end
    local first = ctx.children.configmaps.first
    return {
        children = wanted(ctx),
        status = { value = kopf.get(first, "data.value", "none"), secret = kube.get("secrets", { name = "secret" }) ~= nil },
        conditions = { { type = "Ready", status = first ~= nil, reason = "Seen", message = "the first" } },
    }
end)

kopf.reconcile("kopfexamples", { id = "again", owns = "endpoints", resync = "2s" }, function(ctx)
    place = ctx.namespace
    local calls = kopf.get(ctx.status, "calls", 0)
    if calls < 3 then
        return { status = { calls = calls + 1 } }
    end
end)

kopf.on_event("configmaps", { parent = "kopfexamples" }, function(ctx)
    say("parent-of-" .. ctx.name .. "-is-" .. ctx.parent.metadata.name)
end)

kopf.on_event("services", { owner = "kopfexamples" }, function(ctx)
    say("owner-of-" .. ctx.name .. "-is-" .. ctx.parent.metadata.name)
end)

kopf.every("1s", { id = "often", initial_delay = "2s" }, function(ctx) say("often") end)
kopf.every("2s", { id = "sharp", sharp = true }, function(ctx)
    -- All slots have the fraction of a second of the first one.
    say("sharp-" .. (string.match(ctx.scheduled, "%.(%d+)Z") or "0"))
end)
kopf.cron("* * * * *", { id = "minutes", timezone = "Europe/Berlin", missed = "once" }, function(ctx)
    say("minute-" .. string.sub(ctx.scheduled, 18, 19))
end)
kopf.timer("kopfexamples", { id = "times", schedule = "* * * * *" }, function(ctx) say("timer") end)
kopf.timer("kopfexamples", { id = "own-times", schedule = function(ctx) return ctx.spec.schedule end }, function(ctx)
    say("timer-of-its-own")
end)

kopf.daemon("kopfexamples", { id = "holds" }, function(ctx)
    place = ctx.namespace
    local result = kopf.lock("pool", { timeout = "30s" }, function()
        say("lock-is-held")
        -- The other script has seen it.
        while not kube.get("configmaps", { name = "holder-is-named" }) do
            kopf.sleep(0.1)
        end
        return "result"
    end)
    say("lock-" .. result)
end)
