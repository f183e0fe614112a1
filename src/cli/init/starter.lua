-- An operator of KIND objects.

-- Called for new objects. Change the object through ctx.patch: ctx.patch.metadata.labels = { seen = "yes" }
---@param ctx KIND.ChangeCtx
local function create_fn(ctx)
    ctx.logger:info("%s is new: %s", ctx.name, ctx.spec)
end

-- Called when an object has changed.
---@param ctx KIND.ChangeCtx
local function update_fn(ctx)
    for _, change in ipairs(ctx.diff) do
        ctx.logger:info("%s %s: %s -> %s", change.op, table.concat(change.field, "."), change.old, change.new)
    end
end

kopf.on_create("SELECTOR", create_fn)
kopf.on_update("SELECTOR", update_fn)

kopf.on_delete("SELECTOR", { optional = true }, function(ctx)
    ctx.logger:info("%s is going", ctx.name)
end)
