-- What functions in filters see: the kwargs of the cause, and no attempts, since there is none yet.

local NAMES = {
    "annotations", "body", "diff", "event", "labels", "logger", "memo", "meta", "name", "namespace", "new", "new_value", "old",
    "old_value", "param", "patch", "reason", "resource", "retry", "runtime", "settings", "spec", "started", "status", "stopped",
    "tables", "type", "uid",
}

local function told(kind)
    return function(ctx)
        local present = {}
        for _, name in ipairs(NAMES) do
            if ctx[name] ~= nil then
                table.insert(present, name)
            end
        end
        if ctx.meta.deletionTimestamp == nil then
            ctx.logger:info(`{kind} sees {table.concat(present, " ")}`)
        end
        ctx.memo.asked = (ctx.memo.asked or 0) + 1
        return true
    end
end

local function of_value(kind)
    return function(value, ctx)
        ctx.logger:info(`{kind} is asked about {value or "nothing"}, of {ctx.name}`)
        return true
    end
end

function nothing(ctx) end

kopf.index("kopfexamples", { id = "tables", when = told("index") }, nothing)
kopf.on_event("kopfexamples", { id = "event", param = 1, when = told("event") }, nothing)
kopf.on_create("kopfexamples", { id = "create", param = 1, when = told("create") }, nothing)
kopf.on_update("kopfexamples", { id = "update", when = told("update") }, nothing)
kopf.daemon("kopfexamples", { id = "daemon", initial_delay = 0.1, when = told("daemon") }, nothing)
kopf.on_create("kopfexamples", {
    id = "values",
    labels = { color = of_value("labels"), shape = of_value("labels") },
    annotations = { note = of_value("annotations"), no = of_value("annotations") },
    field = "spec.size",
    value = of_value("value"),
}, nothing)
