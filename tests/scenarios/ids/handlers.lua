-- Where the id of a handler comes from, and so where its result and its progress are.

local M = {}

function create_fn(ctx)
    return "named"
end

local function local_fn(ctx)
    return "local"
end

function M.of_a_table(ctx)
    return "of a table"
end

local assigned_fn = function(ctx)
    return "assigned"
end

kopf.on_create("kopfexamples", create_fn)
kopf.on_create("kopfexamples", local_fn)
kopf.on_create("kopfexamples", M.of_a_table)
kopf.on_create("kopfexamples", { id = "explicit" }, create_fn)
kopf.on_create("kopfexamples", { id = "with/slashes.dots-and_more" }, create_fn)
kopf.on_create("kopfexamples", { id = "a-very-long-id-that-does-not-fit-into-the-name-of-an-annotation-at-all" }, create_fn)
kopf.on_create("kopfexamples", { field = "spec.size" }, create_fn)
kopf.on_create("kopfexamples", { field = { "spec", "a.b" } }, create_fn)
kopf.on_create("kopfexamples", { id = "explicit", field = "spec.size" }, create_fn)
kopf.on_create("kopfexamples", function(ctx) return "anonymous" end)
kopf.on_field("kopfexamples", { field = "spec.size" }, function(ctx) return "anonymous field" end)
kopf.on_update("kopfexamples", function(ctx) return "anonymous update" end)
kopf.on.update("kopfexamples", create_fn)
kopf.on_event("kopfexamples", function(ctx) return "anonymous event" end)
