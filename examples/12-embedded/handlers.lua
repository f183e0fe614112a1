-- Data from outside of the handlers: what an application would pass to the operator that it embeds.
--
-- The memo of the operator is filled at the start. Each object has a memo of its own, which begins as a copy of it.

function startup_fn(ctx)
    ctx.memo.create_tpl = "Hello, {name}!"
    ctx.memo.delete_tpl = "Good bye, {name}!"
end

local function filled(template, name)
    return (template:gsub("{name}", name))
end

function create_fn(ctx)
    print(filled(ctx.memo.create_tpl, ctx.name))
end

function delete_fn(ctx)
    print(filled(ctx.memo.delete_tpl, ctx.name))
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_delete("kopfexamples", delete_fn)
