-- What cannot be changed, and what the error says to do instead.

local function refused(ctx, what, change)
    local ok, problem = pcall(change)
    ctx.logger:info(what .. ": " .. (if ok then "accepted" else "refused"))
    return problem
end

function create_fn(ctx)
    refused(ctx, "spec.field", function() ctx.spec.field = "x" end)
    refused(ctx, "spec.added", function() ctx.spec.added = "x" end)
    refused(ctx, "spec.deep.er", function() ctx.spec.deep.er = "x" end)
    refused(ctx, "body.spec", function() ctx.body.spec = {} end)
    refused(ctx, "labels.a", function() ctx.labels.a = "x" end)
    refused(ctx, "meta.name", function() ctx.meta.name = "x" end)
    refused(ctx, "a list item", function() ctx.spec.list[1] = 7 end)
    refused(ctx, "ctx.spec", function() ctx.spec = {} end)
    refused(ctx, "ctx.own", function() ctx.own = 1 end)
    ctx.logger:info("as before " .. tostring(ctx.spec))
end

function part_fn(ctx)
    ctx.spec.field = "x"
end

function ctx_fn(ctx)
    ctx.own = 1
end

kopf.on_create("kopfexamples", create_fn)
kopf.on_create("kopfexamples", { retries = 1 }, part_fn)
kopf.on_create("kopfexamples", { retries = 1 }, ctx_fn)
