-- The cluster client: refusals and mistakes.

local function config(name, data)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = data }
end

local function tell(log, what, call)
    local ok, e = pcall(call)
    if ok then
        log:info(what .. ": no error")
    else
        log:info(what .. ": " .. tostring(e.status) .. " " .. e.reason .. ": " .. e)
    end
    return e
end

function caught_fn(ctx)
    local log = ctx.logger
    local made = kube.create(config("made", { a = "1" }))
    tell(log, "exists", function() kube.create(config("made")) end)
    made.data.a = "2"
    kube.patch(made, { data = { b = "1" } })
    tell(log, "stale", function() kube.replace(made) end)
    tell(log, "missing", function() kube.patch(config("none"), { data = {} }) end)
    tell(log, "not gone", function() kube.delete(config("none"), { missing_ok = false }) end)
    tell(log, "other uid", function() kube.delete(made, { uid = "other" }) end)
    local e = tell(log, "invalid", function() kube.create(config("UPPER")) end)
    log:info("field: " .. e.details.causes[1].field)
    kube.apply(config("made", { a = "3" }), { field_manager = "me", force = true })
    tell(log, "owned", function() kube.apply(config("made", { a = "4" }), { field_manager = "you" }) end)
    log:info("forced: " .. kube.apply(config("made", { a = "4" }), { field_manager = "you", force = true }).data.a)
    tell(log, "unknown", function() kube.list("unicorns") end)
    tell(log, "misspelled", function() kube.list("configmapz") end)
    tell(log, "unknown kind", function() kube.create({ apiVersion = "v1", kind = "Unicorn", metadata = { name = "u" } }) end)
    tell(log, "not scalable", function() kube.scale(made, 2) end)
    local error = tell(log, "no such pod", function() kube.logs("none") end)
    ctx.patch.status.error = error
end

function uncaught_fn(ctx)
    kube.create(config("UPPER"))
end

local function refuse(log, call)
    local _, e = pcall(call)
    log:info((tostring(e):gsub("^handlers.lua:%d+: ", "")))
end

function mistaken_fn(ctx)
    local log = ctx.logger
    refuse(log, function() kube.get() end)
    refuse(log, function() kube.get("pods") end)
    refuse(log, function() kube.get("pods", "one") end)
    refuse(log, function() kube.get("pods", { nam = "one" }) end)
    refuse(log, function() kube.list("pods", { limit = -1 }) end)
    refuse(log, function() kube.list("pods", { label_selector = { a = { "b" } } }) end)
    refuse(log, function() kube.create({ kind = "ConfigMap" }) end)
    refuse(log, function() kube.delete({ apiVersion = "v1", kind = "ConfigMap" }) end)
    refuse(log, function() kube.delete(config("made"), { propagation = "some" }) end)
    refuse(log, function() kube.patch(config("made"), "text") end)
    refuse(log, function() kube.patch(config("made"), {}, { type = "other" }) end)
    refuse(log, function() kube.apply(config("made"), { namespace = "*" }) end)
    refuse(log, function() kube.get("namespaces", { name = "x", namespace = "y" }) end)
    refuse(log, function() kube.wait(config("made"), "ready") end)
    refuse(log, function() kube.evict({}) end)
    local kept = {}
    refuse(log, function()
        while #kept < 2000 do
            kept[#kept + 1] = kube.watch("configmaps")
        end
    end)
    log:info("loops: " .. #kept)
end

local ok, problem = pcall(function() kube.list("pods") end)
print((problem:gsub("^handlers.lua:%d+: ", "")))
kopf.on_create("kopfexamples", { field = "spec.caught" }, caught_fn)
kopf.on_create("kopfexamples", { field = "spec.uncaught", errors = "permanent" }, uncaught_fn)
kopf.on_create("kopfexamples", { field = "spec.mistaken" }, mistaken_fn)
