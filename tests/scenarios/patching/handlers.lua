-- Every way to write into `ctx.patch`, and the PATCH that comes of it.

function levels_fn(ctx)
    ctx.patch.status.a.b.c = 1
    ctx.patch.status.a.d = "text"
    ctx.patch.spec.big = 9007199254740992
    ctx.patch.spec.half = 0.5
    ctx.patch.spec.yes = true
    ctx.logger:info("reads back " .. tostring(ctx.patch.status.a))
    ctx.logger:info("a value " .. ctx.patch.status.a.d)
    ctx.logger:info("asked " .. tostring(kopf.get(ctx.patch, "status.nothing.here", "default")))
end

function delete_fields_fn(ctx)
    ctx.patch.spec.remove_me = kopf.null
    ctx.patch.metadata.annotations["a/b.c"] = kopf.null
    ctx.logger:info("deletes " .. tostring(ctx.patch))
end

function withdraw_fn(ctx)
    ctx.patch.status.unwanted = "x"
    ctx.patch.status.nested.unwanted = "x"
    ctx.patch.status.unwanted = nil
    ctx.patch.status.nested = nil
    ctx.logger:info("withdrawn " .. tostring(ctx.patch))
end

function meta_fn(ctx)
    ctx.patch.meta.labels.color = "red"
    ctx.patch.metadata.labels["app.kubernetes.io/name"] = "named"
    ctx.patch.meta.annotations.note = "written"
    ctx.logger:info("one metadata " .. tostring(ctx.patch))
end

function lists_fn(ctx)
    ctx.patch.spec.list = { 1, 2, { name = "x" } }
    ctx.patch.spec.items = kopf.copy(ctx.spec.items)
    ctx.patch.spec.same = ctx.spec.items
    ctx.patch.spec.empty = kopf.array()
    ctx.patch.spec.map = { x = 1, y = { z = kopf.array() } }
    ctx.patch.status = { whole = true }
    ctx.logger:info("list " .. tostring(ctx.patch.spec.list))
end

function own_id_fn(ctx)
    ctx.patch.status["key.with/dots"] = "x"
    for _, name in ipairs({ "a", "b" }) do
        ctx.patch.status.loop[name] = name
    end
end

local function add_finalizer(body)
    body.metadata.finalizers = body.metadata.finalizers or {}
    for _, it in ipairs(body.metadata.finalizers) do
        if it == "example.com/mine" then
            return
        end
    end
    table.insert(body.metadata.finalizers, "example.com/mine")
end

function fns_fn(ctx)
    ctx.patch.fns:append(add_finalizer)
    ctx.patch.fns:append(function(body)
        body.spec.counted = #body.spec.items
        body.spec.remove_too = nil
    end)
    ctx.logger:info("functions " .. #ctx.patch.fns)
end

function empty_fn(ctx)
    ctx.logger:info("untouched " .. tostring(ctx.patch))
    local nothing = ctx.patch.status.only.looked.at
    ctx.logger:info("looked at " .. tostring(ctx.patch))
end

for _, fn in ipairs({ levels_fn, delete_fields_fn, withdraw_fn, meta_fn, lists_fn, own_id_fn, fns_fn, empty_fn }) do
    kopf.on_create("kopfexamples", fn)
end
