-- Options and filters of sub-handlers.

local function say(what)
    return function(sub)
        local function text(value) return value == nil and "nothing" or tostring(value) end
        local diff = {}
        for _, it in ipairs(sub.diff) do
            table.insert(diff, it.op .. " " .. table.concat(it.field, "."))
        end
        sub.logger:info(("%s: %s -> %s, %s"):format(what, text(sub.old), text(sub.new), table.concat(diff, "; ")))
    end
end

function create_fn(ctx)
    kopf.register({ id = "web", labels = { app = "web" } }, say("web"))
    kopf.register({ id = "db", labels = { app = "db" } }, say("db"))
    kopf.register({ id = "noted", annotations = { note = kopf.PRESENT } }, say("noted"))
    kopf.register({ id = "when", when = function(c) return c.name == ctx.name end }, say("when"))
    kopf.register({ id = "not-when", when = function(c) return c.name ~= ctx.name end }, say("not-when"))
    kopf.register({ id = "size", field = "spec.size", value = 1 }, say("size"))
    kopf.register({ id = "absent", field = "spec.absent" }, say("absent"))
    kopf.register({ id = "errors", errors = "ignored" }, function() error("ignored") end)
    kopf.register({ id = "backoff", backoff = 2, retries = 2 }, function() error("again") end)
end
kopf.on_create("kopfexamples", create_fn)

function update_fn(ctx)
    kopf.register({ id = "size", field = "spec.size" }, say("size"))
    kopf.register({ id = "grown", field = "spec.size", old = 1, new = 2 }, say("grown"))
    kopf.register({ id = "width", field = "spec.box.width" }, say("width"))
end
kopf.on_update("kopfexamples", update_fn)

-- The parent looks at spec.box, and its sub-handlers from there.
function box_fn(ctx)
    kopf.register({ id = "whole" }, say("whole box"))
    kopf.register({ id = "width", field = "width" }, say("width in the box"))
    kopf.register({ id = "height", field = "height" }, say("height in the box"))
end
kopf.on_field("kopfexamples", { field = "spec.box" }, box_fn)
