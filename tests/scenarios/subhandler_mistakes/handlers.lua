-- Wrong uses of sub-handlers: each is an error that says what to do.

function f(ctx) end

local function is_raw(ctx) return ctx.name == "raw" end
local function is_not_raw(ctx) return ctx.name ~= "raw" end

kopf.on_startup(function(ctx)
    local ok = pcall(kopf.subhandler, f)
    ctx.logger:info("sub-handlers in a start-up handler: " .. tostring(ok))
end)
kopf.on_event("kopfexamples", { id = "declares", when = is_raw }, function(ctx) kopf.subhandler(f) end)
kopf.on_event("kopfexamples", { id = "executes", when = is_raw }, function(ctx) kopf.execute() end)

kopf.on_create("kopfexamples", { id = "same_id", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "x" }, f) kopf.register({ id = "x" }, f) end)
kopf.on_create("kopfexamples", { id = "anonymous", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register(function() end) kopf.register(function() end) end)
kopf.on_create("kopfexamples", { id = "passed_and_declared", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "x" }, f) kopf.execute({ fns = { x = f } }) end)
kopf.on_create("kopfexamples", { id = "both", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ fns = { f }, handlers = { f } }) end)
kopf.on_create("kopfexamples", { id = "unknown_option", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ fn = f }) end)
kopf.on_create("kopfexamples", { id = "no_function", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ fns = { 1 } }) end)
kopf.on_create("kopfexamples", { id = "no_handler", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ handlers = { { 1, f } } }) end)
kopf.on_create("kopfexamples", { id = "no_options", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute(7) end)
kopf.on_create("kopfexamples", { id = "no_lifecycle", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ lifecycle = "all" }) end)
kopf.on_create("kopfexamples", { id = "misspelled", errors = "permanent", when = is_not_raw }, function(ctx) kopf.execute({ lifecycle = kopf.lifecycles.al_at_once }) end)
kopf.on_create("kopfexamples", { id = "no_subject", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "x" }) end)
kopf.on_create("kopfexamples", { id = "resource", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register("kopfexamples", f) end)
kopf.on_create("kopfexamples", { id = "sub_option", errors = "permanent", when = is_not_raw }, function(ctx) kopf.subhandler({ retrys = 3 }, f) end)
kopf.on_create("kopfexamples", { id = "old_value", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ field = "spec.x", old = 1 }, f) end)
kopf.on_create("kopfexamples", { id = "late", errors = "permanent", when = is_not_raw }, function(ctx) kopf.on_create("kopfexamples", f) end)
kopf.on_create("kopfexamples", { id = "late_lifecycle", errors = "permanent", when = is_not_raw }, function(ctx) kopf.set_default_lifecycle(kopf.lifecycles.asap) end)
kopf.on_create("kopfexamples", { id = "caught", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "later" }, function() kopf.fail("never") end) kopf.register({ id = "once" }, f) pcall(kopf.execute) end)
kopf.on_create("kopfexamples", { id = "filter", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "x", when = function() error("no idea") end }, f) end)
kopf.on_create("kopfexamples", { id = "filter_declares", errors = "permanent", when = is_not_raw }, function(ctx) kopf.register({ id = "x", when = function() kopf.register(f) end }, f) end)
