-- Copies Secrets and ConfigMaps into other namespaces, and keeps the copies in sync with their source.
--
-- The annotation `to` of a source lists the namespaces: names or patterns, separated by commas. The annotation `from` of a copy names
-- its source; objects with another source, or without the annotation, are never touched.

---@class kopf.Ctx
---@field copies kopf.Index All copies, by the uid of their source; for editors.

local TO = "replicator.example.com/to"
local FROM = "replicator.example.com/from"
local SOURCE = "replicator.example.com/source" -- the label of copies: the uid of the source

-- Whether a name matches one of the patterns. A `*` matches any string.
local function fits(name, patterns)
    for pattern in patterns:gmatch("[^%s,]+") do
        local head, tail = pattern:match("^([^*]*)%*([^*]*)$")
        if name == pattern then
            return true
        elseif head and #name >= #head + #tail and name:sub(1, #head) == head and name:sub(#name - #tail + 1) == tail then
            return true
        end
    end
    return false
end

local function from(source)
    return source.metadata.namespace .. "/" .. source.metadata.name
end

local function copy(kind, source, namespace)
    local wanted = {
        apiVersion = "v1",
        kind = kind,
        metadata = {
            name = source.metadata.name,
            namespace = namespace,
            labels = { [SOURCE] = source.metadata.uid },
            annotations = { [FROM] = from(source) },
        },
        type = source.type,
        data = source.data,
        binaryData = source.binaryData,
    }
    local present = kube.get(wanted)
    if not present then
        -- If another client is faster, this is an error, and nothing is overwritten.
        kube.create(wanted)
        return
    end
    local annotations = present.metadata.annotations or {}
    if annotations[FROM] ~= from(source) then
        kopf.warn(source, "NotReplicated", `{kind} {namespace}/{source.metadata.name} is not a copy of this one`)
        return
    end
    -- This is a conflict if the object has changed since it was read.
    wanted.metadata.resourceVersion = present.metadata.resourceVersion
    kube.replace(wanted)
end

-- Returns the copies of an object, from the index below.
local function copies_of(ctx)
    return ctx.copies[ctx.uid] or {}
end

local function remove(it)
    kube.delete({ apiVersion = "v1", kind = it.kind, metadata = { name = it.name, namespace = it.namespace } }, { uid = it.uid })
end

-- Creates or updates all copies of a source, and removes those that are no longer needed.
function replicate(ctx)
    local patterns = ctx.annotations[TO]
    for namespace, phases in ctx.places do
        if namespace ~= ctx.namespace and phases[1] == "Active" and fits(namespace, patterns) then
            copy(ctx.param, ctx.body, namespace)
        end
    end
    for _, it in copies_of(ctx) do
        if not fits(it.namespace, patterns) then
            remove(it)
        end
    end
end

-- Removes all copies: the source is deleted, or no longer has the annotation.
function withdraw(ctx)
    for _, it in copies_of(ctx) do
        remove(it)
    end
end

-- Creates the copies in a new namespace at once. If this fails, the timer creates them later.
function welcome(ctx)
    if ctx.type ~= "ADDED" then
        return
    end
    for _, found in ctx.sources do
        for _, it in found do
            if it.namespace ~= ctx.name and fits(ctx.name, it.to) then
                local source = kube.get("v1", it.kind, { name = it.name, namespace = it.namespace })
                if source then
                    copy(it.kind, source, ctx.name)
                end
            end
        end
    end
end

-- Indexes of all namespaces, sources and copies, so that no requests are needed to find them.
function places(ctx)
    return { [ctx.name] = ctx.status.phase }
end

function sources(ctx)
    return { [ctx.uid] = { kind = ctx.param, name = ctx.name, namespace = ctx.namespace, to = ctx.annotations[TO] } }
end

function copies(ctx)
    local it = { kind = ctx.param, name = ctx.name, namespace = ctx.namespace, uid = ctx.uid }
    return { [ctx.labels[SOURCE]] = it }
end

kopf.index("namespaces", places)
kopf.on_event("namespaces", welcome)

for _, names in { { kind = "Secret", plural = "secrets" }, { kind = "ConfigMap", plural = "configmaps" } } do
    local kind, plural = names.kind, names.plural
    local is_source, is_copy = { [TO] = kopf.PRESENT }, { [SOURCE] = kopf.PRESENT }
    kopf.index(plural, { annotations = is_source, param = kind }, sources)
    kopf.index(plural, { labels = is_copy, param = kind }, copies)
    kopf.on_create(plural, { annotations = is_source, param = kind }, replicate)
    kopf.on_update(plural, { annotations = is_source, param = kind }, replicate)
    kopf.on_resume(plural, { annotations = is_source, param = kind }, replicate)
    kopf.timer(plural, { id = "repair", annotations = is_source, param = kind, interval = 60, initial_delay = 60 }, replicate)
    kopf.on_delete(plural, { annotations = is_source }, withdraw)
    -- The annotation was removed: the remaining copies show this. Nothing is written to objects without the annotation.
    kopf.on_event(plural, {
        id = "abandon",
        annotations = { [TO] = kopf.ABSENT },
        when = function(ctx)
            return ctx.copies[ctx.uid] ~= nil
        end,
    }, withdraw)
end
