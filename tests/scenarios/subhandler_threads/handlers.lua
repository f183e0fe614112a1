-- One worker for parents, sub-handlers, and what they ask.

kopf.on_startup({ id = "one_worker" }, function(ctx) ctx.settings.execution.max_workers = 1 end)

local function yes() return true end
local function all(handlers) return handlers end

function parent_fn(ctx)
    kopf.register({ id = "a", when = yes }, function(a)
        kopf.register({ id = "b", when = yes }, function(b)
            kopf.sleep(2)
            return "deep"
        end)
        kopf.execute({ lifecycle = all })
    end)
    kopf.register({ id = "c" }, function() kopf.sleep(1) end)
    kopf.execute({ lifecycle = all })
end
kopf.on_create("kopfexamples", parent_fn)
