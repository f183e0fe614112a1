-- Locks, and errors as values.

local function take_turns(ctx)
    local result = kopf.lock("shared", function()
        ctx.logger:info("has the lock")
        kopf.sleep(5)
        ctx.logger:info("frees the lock")
        return ctx.name
    end)
    kopf.sleep(1)
    ctx.logger:info("got " .. result)
end

local function refused(ctx, what, ...)
    local value, problem = kopf.try(...)
    ctx.logger:info(what .. ": " .. tostring(value) .. " " .. tostring(problem))
end

local function errors(ctx)
    local function nothing() end
    refused(ctx, "value", function(a, b) return a + b end, 1, 2)
    refused(ctx, "no value", nothing)
    refused(ctx, "error", error, "broken", 0)
    refused(ctx, "kopf.retry", kopf.retry, "not yet", 5)
    refused(ctx, "of the server", kube.get, "nosuchkind", { name = "x" })
    refused(ctx, "error in a lock", kopf.lock, "mine", function() error("broken", 0) end)
    refused(ctx, "free again", kopf.lock, "mine", function() return "yes" end)
    refused(ctx, "nested", kopf.lock, "mine", function() return kopf.lock("mine", nothing) end)
    refused(ctx, "of an object", kopf.lock, ctx, function()
        return kopf.lock({ apiVersion = "v1", kind = "Pod", metadata = { name = "x" } }, { timeout = "1s" }, function()
            return "both"
        end)
    end)
    refused(ctx, "the same object", kopf.lock, ctx, function() return kopf.lock(ctx.body, nothing) end)
    refused(ctx, "no name", kopf.lock, "", nothing)
    refused(ctx, "no object", kopf.lock, { a = 1 }, nothing)
    refused(ctx, "long name", kopf.lock, string.rep("x", 1000000), nothing)
    refused(ctx, "unknown option", kopf.lock, "x", { timeuot = 1 }, nothing)
    refused(ctx, "wrong timeout", kopf.lock, "x", { timeout = "soon" }, nothing)
    refused(ctx, "try_call", kopf.try_call, function() return "the same" end)
end

local function many(n, last)
    return kopf.lock("lock " .. n, function()
        if n == last then
            return n
        end
        return many(n + 1, last)
    end)
end

local others = { ["deadlock-1"] = { "left", "right" }, ["deadlock-2"] = { "right", "left" } }

local function deadlock(ctx)
    local names = others[ctx.name]
    kopf.lock(names[1], function()
        kopf.sleep(2)
        refused(ctx, "second", kopf.lock, names[2], function() kopf.sleep(1) return "has both" end)
    end)
end

function create_fn(ctx)
    if ctx.name == "errors" then
        errors(ctx)
        refused(ctx, "many", many, 1, 30)
    elseif others[ctx.name] then
        deadlock(ctx)
    elseif ctx.name == "after-late" then
        refused(ctx, "held", kopf.lock, "long", { timeout = 2 }, function() return "no" end)
        refused(ctx, "freed", kopf.lock, "long", { timeout = "1m" }, function() kopf.sleep(1) return "yes" end)
    elseif ctx.name ~= "late" then
        take_turns(ctx)
    end
end

kopf.on_create("kopfexamples", create_fn)
kopf.on_create("kopfexamples", { id = "late", timeout = 10, when = function(ctx) return ctx.name == "late" end }, function(ctx)
    kopf.lock("long", function()
        ctx.logger:info("holds it for long")
        kopf.sleep(100)
    end)
end)
