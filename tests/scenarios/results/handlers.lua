-- What handlers return, and what of it is stored in the status.

function number(ctx) return 42 end
function fraction(ctx) return 0.5 end
function text(ctx) return "done" end
function truth(ctx) return false end
function map(ctx) return { message = "hello", nested = { list = { 1, 2 } } } end
function list(ctx) return { "a", "b" } end
function empty_list(ctx) return kopf.array() end
function empty_map(ctx) return {} end
function nothing(ctx) return nil end
function null_fn(ctx) return kopf.null end
function no_return(ctx) end
function part(ctx) return ctx.spec end
function big(ctx) return ctx.spec.big end
function field_fn(ctx) return { old = ctx.old or "absent", new = ctx.new } end
function merged(ctx)
    ctx.patch.status.merged = { own = 1 }
    return { returned = 2 }
end
function impossible(ctx) return { inner = { f = function() end } } end
function event_fn(ctx) return ctx.name end

for _, fn in ipairs({ number, fraction, text, truth, map, list, empty_list, empty_map, nothing, null_fn, no_return, part, big, merged }) do
    kopf.on_create("kopfexamples", fn)
end
kopf.on_create("kopfexamples", { id = "dotted.id/with-slash" }, text)
kopf.on_field("kopfexamples", { field = "spec.size" }, field_fn)
kopf.on_create("kopfexamples", { retries = 1 }, impossible)
kopf.on_event("kopfexamples", event_fn)
