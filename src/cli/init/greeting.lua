-- An operator that answers each KIND with a message in its status.

local hello = { english = "Hello", german = "Hallo", spanish = "Hola" }

-- Called for new objects, and when their spec has changed.
---@param ctx KIND.ChangeCtx
local function greet(ctx)
    local message = hello[ctx.spec.language] .. ", " .. ctx.spec.name .. "!"
    ctx.logger:info(message)
    ctx.patch.status.message = message
end

kopf.on_create("SELECTOR", greet)
kopf.on_update("SELECTOR", { field = "spec" }, greet)

kopf.on_delete("SELECTOR", { optional = true }, function(ctx)
    ctx.logger:info("Goodbye, %s.", ctx.spec.name)
end)

-- Called again and again for each object; the memo is kept as long as the operator runs.
kopf.timer("SELECTOR", { interval = "10s" }, function(ctx)
    ctx.memo.greeted = (ctx.memo.greeted or 0) + 1
    ctx.patch.status.greeted = ctx.memo.greeted
end)
