-- Modules beside the script.

local names = require("_names")
local sizes = require("lib.sizes")

function create_fn(ctx)
    ctx.logger:info(names.greeting(ctx.name))
    return { size = sizes.double(ctx.spec.size), unit = sizes.UNIT }
end

function failing_fn(ctx)
    sizes.refuse(ctx.spec.size)
end

function plain_fn(ctx)
    sizes.wrong()
end

kopf.on_create("kopfexamples", create_fn)
kopf.on_create("kopfexamples", failing_fn)
kopf.on_create("kopfexamples", { retries = 1 }, plain_fn)
