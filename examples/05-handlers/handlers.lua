-- Every kind of change handler, some of them twice: they are called one after another, in the order of declaration.

function resume_fn_1(_ctx)
    print("RESUMED 1st")
end

function create_fn_1(_ctx)
    print("CREATED 1st")
end

function resume_fn_2(_ctx)
    print("RESUMED 2nd")
end

function create_fn_2(_ctx)
    print("CREATED 2nd")
end

function update_fn(_ctx)
    print("UPDATED")
end

function delete_fn_1(_ctx)
    print("DELETED 1st")
end

function delete_fn_2(_ctx)
    print("DELETED 2nd")
end

-- Also called for a new object: there, the field changes from nil to its first value.
function field_fn(ctx)
    print(`FIELD CHANGED: {ctx.old or "None"} -> {ctx.new or "None"}`)
end

kopf.on_resume("kopfexamples", resume_fn_1)
kopf.on_create("kopfexamples", create_fn_1)
kopf.on_resume("kopfexamples", resume_fn_2)
kopf.on_create("kopfexamples", create_fn_2)
kopf.on_update("kopfexamples", update_fn)
kopf.on_delete("kopfexamples", delete_fn_1)
kopf.on_delete("kopfexamples", delete_fn_2)
kopf.on_field("kopfexamples", { field = "spec.field" }, field_fn)
