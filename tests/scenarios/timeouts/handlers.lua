-- Handlers that take longer than they may.

local function named(name)
    return function(ctx) return ctx.name == name end
end

kopf.on_create("kopfexamples", { id = "long_fn", when = named("long"), timeout = 2 }, function(ctx)
    ctx.patch.status.begun = true
    kopf.sleep(10)
    ctx.logger:info("never reached")
end)
kopf.on_create("kopfexamples", { id = "in_time_fn", when = named("long"), timeout = 5 }, function(ctx)
    kopf.sleep(4.5 - ctx.runtime)
end)

kopf.on_create("kopfexamples", { id = "tried_fn", when = named("tried"), timeout = 5 }, function(ctx)
    if ctx.retry == 0 then
        kopf.retry("first", 3)
    end
    kopf.sleep("1h")
end)

kopf.on_create("kopfexamples", { id = "parent_fn", when = named("parent"), timeout = 4 }, function(ctx)
    kopf.register({ id = "short" }, function(sub) kopf.sleep(1) return "kept" end)
    kopf.register({ id = "long" }, function(sub) kopf.sleep(30) end)
    kopf.execute({ lifecycle = kopf.lifecycles.all_at_once })
end)

kopf.on_create("kopfexamples", { id = "child_fn", when = named("child") }, function(ctx)
    kopf.register({ id = "long", timeout = 2 }, function(sub) kopf.sleep(30) end)
    kopf.register({ id = "short" }, function(sub) return "done" end)
end)

kopf.on_create("kopfexamples", { id = "caught_fn", when = named("caught"), timeout = 2 }, function(ctx)
    pcall(function() kopf.sleep(10) end)
    ctx.logger:info("never reached")
end)

kopf.on_create("kopfexamples", { id = "ignored_fn", when = named("ignored"), timeout = 2, errors = "ignored" }, function(ctx)
    kopf.sleep(10)
end)
