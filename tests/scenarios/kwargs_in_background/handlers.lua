-- What `ctx` holds in daemons, timers and index functions, and what it does not.

local NAMES = {
    "activity", "annotations", "body", "diff", "event", "labels", "logger", "memo", "meta", "name", "namespace", "new", "new_value",
    "old", "old_value", "param", "patch", "reason", "resource", "retry", "runtime", "settings", "spec", "started", "status",
    "stopped", "table", "type", "uid",
}

local function tell(ctx, kind)
    local present = {}
    for _, name in ipairs(NAMES) do
        if ctx[name] ~= nil then
            table.insert(present, name)
        end
    end
    ctx.logger:info(`{kind} has {table.concat(present, " ")}`)
    ctx.logger:info(`attempt {ctx.retry} of {ctx.started}, {math.floor(ctx.runtime)} s, param {ctx.param}, of {ctx.namespace}/{ctx.name}`)
    if ctx.retry == 0 then
        kopf.retry("once more", 2)
    end
end

kopf.daemon("kopfexamples", { id = "daemon", initial_delay = 0.1, param = { a = 1 } }, function(ctx)
    tell(ctx, "daemon")
end)
kopf.timer("kopfexamples", { id = "timer", param = "text", interval = 100, initial_delay = 1 }, function(ctx)
    tell(ctx, "timer")
    ctx.logger:info(`not to be stopped: {not ctx.stopped:is_set()}, {ctx.stopped.reason or "no reason"}`)
end)
kopf.index("kopfexamples", { id = "table", param = 7 }, function(ctx)
    tell(ctx, "index")
    return ctx.spec.size
end)
