-- Conditions of the handled object, in every kind of handler that has a patch.

function first_fn(ctx)
    local conditions = ctx.conditions
    ctx.logger:info("before " .. tostring(conditions))
    ctx.logger:info("ready? " .. tostring(conditions:is_true("Ready")))
    conditions:set("Ready", false, "Deploying", "1/3 pods")
    conditions:set("Ready", false, "Deploying", "2/3 pods")
    local ready = conditions:get("Ready")
    ctx.logger:info(ready.status .. " " .. ready.reason .. " " .. ready.message .. " " .. ready.lastTransitionTime)
    ctx.logger:info("nothing " .. tostring(conditions:get("Nothing") == nil))
    conditions:set("example.com/Checked", "Unknown")
    ctx.patch.status.phase = "Deploying"
end

-- What was set before a failure is written, too; the time is that of the first change.
function retried_fn(ctx)
    if ctx.retry < 2 then
        ctx.conditions:set("Ready", ctx.retry == 1, "Attempt", "attempt " .. ctx.retry)
        kopf.retry("not yet", 5)
    end
    ctx.logger:info("ready? " .. tostring(ctx.conditions:is_true("Ready")))
    ctx.conditions:set("Ready", true)
    ctx.conditions:remove("example.com/Checked")
    ctx.conditions:remove("Nothing")
    for _, condition in ctx.conditions do
        ctx.logger:info("has " .. condition.type)
    end
    ctx.logger:info("count " .. #ctx.conditions)
end

function mistakes_fn(ctx)
    local function told(...)
        local arguments = table.pack(...)
        local ok, problem = pcall(function()
            ctx.conditions:set(table.unpack(arguments, 1, arguments.n))
        end)
        ctx.logger:info(ok and "fine" or tostring(problem):match("ctx%.conditions[^\n]*"))
    end
    told("not a name", true)
    told(5, true)
    told("Ready", "yes")
    told("Ready", nil)
    told("Ready", true, "not a word")
    told("Ready", true, 5)
    told("Ready", true, "Fine", { 1 })
end

function updated_fn(ctx)
    -- Nothing is new but the generation.
    ctx.conditions:set("Ready", true)
end

function ticking(ctx)
    ctx.conditions:set("Ticked", true, "Timer", "tick")
end

function watching(ctx)
    ctx.conditions:set("Watched", true, "Daemon", "while generation is " .. ctx.meta.generation)
    ctx.stopped:wait()
    ctx.conditions:set("Watched", false, "Daemon")
end

kopf.on_create("kopfexamples", { labels = { kind = "change" } }, first_fn)
kopf.on_create("kopfexamples", { labels = { kind = "change" } }, retried_fn)
kopf.on_create("kopfexamples", { labels = { kind = "change" } }, mistakes_fn)
kopf.on_update("kopfexamples", { labels = { kind = "change" } }, updated_fn)
kopf.timer("kopfexamples", { labels = { kind = "background" }, interval = 20, initial_delay = 1 }, ticking)
kopf.daemon("kopfexamples", { labels = { kind = "background", daemon = "yes" }, initial_delay = 2 }, watching)
kopf.on_event("kopfexamples", { labels = { kind = "raw" } }, function(ctx)
    ctx.conditions:set("Seen", true)
end)
kopf.on_startup(function(ctx)
    ctx.logger:info("none in activities: " .. tostring(ctx.conditions))
end)
