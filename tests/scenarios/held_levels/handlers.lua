-- Levels of `ctx.patch` and `ctx.memo` that a handler holds while something else takes their place.

local function attempt(ctx, what, change)
    local ok, problem = pcall(change)
    -- Without the place in the file.
    ctx.logger:info(what .. ": " .. (if ok then "accepted" else string.match(tostring(problem), "%d+: (.*)$")))
end

function patch_fn(ctx)
    local level = ctx.patch.status.level
    level.a = 1
    ctx.patch.status.level = "text"
    attempt(ctx, "below a string", function() level.b = 2 end)
    ctx.patch.status.level = { 1 }
    attempt(ctx, "below a list", function() level.b = 2 end)
    ctx.patch.status.level = kopf.null
    attempt(ctx, "below a null", function() level.b = 2 end)
    ctx.patch.status.level = nil
    attempt(ctx, "below nothing", function() level.c = 3 end)
    ctx.logger:info("patch " .. tostring(ctx.patch))
end

function memo_fn(ctx)
    ctx.memo.level = { a = 1 }
    local level = ctx.memo.level
    ctx.memo.level = "text"
    attempt(ctx, "below a string", function() level.b = 2 end)
    ctx.memo.level = nil
    attempt(ctx, "below nothing", function() level.c = 3 end)
    ctx.memo.level.list = { 1 }
    table.insert(ctx.memo.level.list, 2)
    ctx.memo.level.list[1] = "first"
    ctx.logger:info("memo " .. tostring(ctx.memo))
end

function functions_fn(ctx)
    local ok = pcall(function() ctx.patch.fns = 1 end)
    ctx.logger:info("fns: " .. (if ok then "accepted" else "refused"))
    ctx.conditions:set("Ready", true)
    ctx.patch.fns:append(function(body) end)
    ctx.logger:info("functions " .. #ctx.patch.fns)
end

kopf.on_create("kopfexamples", patch_fn)
kopf.on_create("kopfexamples", memo_fn)
kopf.on_create("kopfexamples", functions_fn)
