-- Sub-handlers in their three forms, with retries, and nested.

local function named(name)
    return function(ctx) return ctx.name == name end
end

-- Declared, registered, and passed: each with what its parent knows.
function forms_fn(ctx)
    kopf.subhandler({ id = "first" }, function(sub)
        sub.logger:info("first of " .. ctx.name .. " retry " .. sub.retry .. " reason " .. sub.reason)
        return { done = true }
    end)
    for _, item in ipairs(ctx.spec.items) do
        kopf.register({ id = "item-" .. item, param = item }, function(sub)
            sub.logger:info("item " .. item .. " param " .. sub.param)
            return item
        end)
    end
    kopf.execute()
    ctx.logger:info("the declared ones are done")
    kopf.execute({ fns = { a = passed_fn, b = function(sub) sub.patch.status.b = true end } })
    kopf.execute({ fns = { passed_fn } })
    kopf.execute({ handlers = { { { id = "c", param = 7 }, passed_fn } } })
    ctx.logger:info("all are done")
    return "parent"
end
function passed_fn(sub)
    sub.logger:info("passed: " .. tostring(sub.param))
end
kopf.on_create("kopfexamples", { when = named("forms") }, forms_fn)

-- One that fails for a while, one that fails for good: the third is called once.
function failing_fn(ctx)
    ctx.logger:info("the parent, retry " .. ctx.retry)
    kopf.subhandler({ id = "never" }, function(sub) kopf.fail("no way") end)
    kopf.subhandler({ id = "later", retries = 5 }, function(sub)
        if sub.retry < 2 then
            kopf.retry("not yet", 3)
        end
        return sub.retry
    end)
    kopf.subhandler({ id = "once" }, function(sub) sub.logger:info("once") end)
end
kopf.on_create("kopfexamples", { when = named("failing") }, failing_fn)

-- Levels below levels.
function nested_fn(ctx)
    for _, outer in ipairs({ "a", "b" }) do
        kopf.register({ id = outer }, function(middle)
            for _, inner in ipairs({ "x", "y" }) do
                kopf.register({ id = inner }, function(leaf)
                    leaf.logger:info("leaf " .. outer .. inner)
                    return outer .. inner
                end)
            end
        end)
    end
end
kopf.on_create("kopfexamples", { when = named("nested") }, nested_fn)

-- Deleted in the middle: what is stored of its sub-handlers goes, too.
function leaving_fn(ctx)
    kopf.register({ id = "slow" }, function(sub)
        kopf.register({ id = "slower" }, function() kopf.retry("patience", 30) end)
    end)
end
kopf.on_create("kopfexamples", { when = named("leaving") }, leaving_fn)
function bye_fn(ctx) end
kopf.on_delete("kopfexamples", { when = named("leaving") }, bye_fn)
