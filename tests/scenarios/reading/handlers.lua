-- Reading objects: every kind of value, what is missing, and copies.

local function tell(ctx, what, value)
    ctx.logger:info(what .. ": " .. tostring(value))
end

local function sorted_keys(map)
    local keys = {}
    for key in pairs(map) do
        table.insert(keys, key)
    end
    table.sort(keys)
    return keys
end

function parts_fn(ctx)
    tell(ctx, "body keys", table.concat(sorted_keys(ctx.body), " "))
    tell(ctx, "spec keys", table.concat(sorted_keys(ctx.spec), " "))
    tell(ctx, "same place", ctx.body.spec.text == ctx.spec.text and ctx.meta.name == ctx.name)
    tell(ctx, "no status", #sorted_keys(ctx.status))
    tell(ctx, "labels", ctx.labels)
    tell(ctx, "dots and slashes", ctx.labels["app.kubernetes.io/name"] .. " " .. ctx.annotations["a/b.c"])
end

function values_fn(ctx)
    local spec = ctx.spec
    tell(ctx, "text", spec.text)
    tell(ctx, "unicode", spec.unicode)
    tell(ctx, "yes", spec.yes)
    tell(ctx, "number", spec.number + 1)
    tell(ctx, "fraction", spec.fraction)
    tell(ctx, "negative", spec.negative)
    tell(ctx, "big", spec.big)
    tell(ctx, "bigger", spec.bigger)
    tell(ctx, "reserved", spec.default)
    tell(ctx, "absent", spec.absent == nil)
    tell(ctx, "null", spec.null == nil)
    tell(ctx, "deep", spec.deep.er.est[1].name)
end

function lists_fn(ctx)
    local spec = ctx.spec
    tell(ctx, "list", spec.list)
    tell(ctx, "length", #spec.list)
    tell(ctx, "nested", spec.nested)
    tell(ctx, "nested item", spec.nested[2][1])
    for index, item in ipairs(spec.items) do
        tell(ctx, "item " .. index, item.name)
    end
    tell(ctx, "empty list", spec.empty_list)
    tell(ctx, "empty map", spec.empty_map)
    tell(ctx, "list with a null", spec.holes)
    tell(ctx, "an item of it", spec.holes[2] == kopf.null)
    tell(ctx, "all", spec)
end

function get_fn(ctx)
    local get = kopf.get
    tell(ctx, "plain", get(ctx.spec, "text"))
    tell(ctx, "deep", get(ctx.spec, "deep.er.est[0].name"))
    tell(ctx, "missing", get(ctx.spec, "deep.no.such.thing") == nil)
    tell(ctx, "default", get(ctx.spec, "deep.no.such.thing", "other"))
    tell(ctx, "through a text", get(ctx.spec, "text.more", "other"))
    tell(ctx, "beyond a list", get(ctx.spec, "items[7].name", "other"))
    tell(ctx, "null", get(ctx.spec, "null", "other"))
    tell(ctx, "false is no absence", get(ctx.spec, "no", "other"))
    tell(ctx, "by keys", get(ctx.labels, { "app.kubernetes.io/name" }))
    tell(ctx, "by keys and places", get(ctx.body, { "spec", "items", 0, "name" }))
    tell(ctx, "of the body", get(ctx.body, "metadata.labels.color", "other"))
    tell(ctx, "of nothing", get(nil, "a.b", "other"))
end

function copy_fn(ctx)
    local copy = kopf.copy(ctx.spec)
    copy.text = "changed"
    copy.added = { 1, 2 }
    table.insert(copy.list, 4)
    tell(ctx, "copied", copy.text .. " " .. #copy.list .. " " .. copy.list[4])
    tell(ctx, "original", ctx.spec.text .. " " .. #ctx.spec.list)
    tell(ctx, "list", kopf.copy(ctx.spec.list))
    tell(ctx, "array", kopf.array({ 1, "two", kopf.array() }))
    return { copy = copy, body = ctx.spec, list = ctx.spec.nested, empty = kopf.array() }
end

kopf.on_create("kopfexamples", parts_fn)
kopf.on_create("kopfexamples", values_fn)
kopf.on_create("kopfexamples", lists_fn)
kopf.on_create("kopfexamples", get_fn)
kopf.on_create("kopfexamples", copy_fn)
