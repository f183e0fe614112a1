-- External data for handlers: an application would pass it to the operator that it embeds.
--
-- A startup handler fills the memo of the operator. Each object has a separate memo, which is initialized with a copy of it.

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
