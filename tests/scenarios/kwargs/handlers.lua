-- What `ctx` holds in each kind of handler, and what it does not.

local ALL = {
    "activity", "body", "diff", "event", "labels", "logger", "memo", "meta", "name", "namespace", "new", "new_value", "old",
    "old_value", "param", "patch", "reason", "resource", "retry", "runtime", "settings", "spec", "started", "status", "type",
    "uid", "annotations", "stopped",
}

local function tell(ctx, text)
    ctx.logger:info(text)
end

local function tell_presence(ctx, kind)
    local present, absent = {}, {}
    for _, name in ipairs(ALL) do
        table.insert(if ctx[name] == nil then absent else present, name)
    end
    tell(ctx, kind .. " has " .. table.concat(present, " "))
    tell(ctx, kind .. " has not " .. table.concat(absent, " "))
end

local function tell_object(ctx)
    tell(ctx, ctx.namespace .. "/" .. ctx.name .. " " .. ctx.uid)
    tell(ctx, ctx.body.kind .. " " .. ctx.body.metadata.name .. " " .. ctx.meta.name .. " " .. ctx.meta.generation)
    tell(ctx, "spec " .. tostring(ctx.spec))
    tell(ctx, "status " .. tostring(ctx.status))
    tell(ctx, "labels " .. tostring(ctx.labels) .. " color " .. ctx.labels.color)
    tell(ctx, "resource " .. tostring(ctx.resource))
end

local function tell_change(ctx)
    tell(ctx, "reason " .. ctx.reason)
    tell(ctx, "old " .. tostring(ctx.old or "absent"))
    tell(ctx, "new " .. tostring(ctx.new or "absent"))
    tell(ctx, "twins " .. tostring(ctx.old_value or "absent") .. " " .. tostring(ctx.new_value or "absent"))
    tell(ctx, "diff " .. tostring(ctx.diff))
    for _, item in ipairs(ctx.diff) do
        tell(ctx, item.op .. " at " .. table.concat(item.field, "/"))
    end
end

local function tell_attempt(ctx)
    tell(ctx, "retry " .. ctx.retry .. " started " .. ctx.started .. " for a second: " .. tostring(ctx.runtime >= 1))
    tell(ctx, "param " .. tostring(ctx.param))
end

function startup_fn(ctx)
    tell_presence(ctx, "startup")
    tell(ctx, ctx.activity)
    tell_attempt(ctx)
end

function cleanup_fn(ctx)
    tell_presence(ctx, "cleanup")
    tell(ctx, ctx.activity)
end

function event_fn(ctx)
    tell_presence(ctx, "event")
    tell(ctx, "type " .. (ctx.type or "absent") .. ", of the event " .. (ctx.event.type or "absent"))
    tell(ctx, "object " .. ctx.event.object.metadata.name)
    tell_attempt(ctx)
end

function create_fn(ctx)
    tell_presence(ctx, "create")
    tell_object(ctx)
    tell_change(ctx)
    tell_attempt(ctx)
    if ctx.retry == 0 then
        kopf.retry("once more", 2)
    end
end

function update_fn(ctx)
    tell_presence(ctx, "update")
    tell_change(ctx)
end

function field_fn(ctx)
    tell_presence(ctx, "field")
    tell_change(ctx)
end

function resume_fn(ctx)
    tell_presence(ctx, "resume")
    tell_change(ctx)
end

function delete_fn(ctx)
    tell_presence(ctx, "delete")
    tell_change(ctx)
end

kopf.on_startup({ param = "at once" }, startup_fn)
kopf.on_cleanup(cleanup_fn)
kopf.on_event("kopfexamples", { param = 7 }, event_fn)
kopf.on_create("kopfexamples", { param = { list = { 1, 2 }, text = "x" } }, create_fn)
kopf.on_update("kopfexamples", update_fn)
kopf.on_field("kopfexamples", { field = "spec.size" }, field_fn)
kopf.on_resume("kopfexamples", resume_fn)
kopf.on_delete("kopfexamples", delete_fn)
