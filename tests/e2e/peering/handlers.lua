-- One of several operators of one namespace.

function create_fn(ctx)
end

kopf.on_create("kopfexamples", create_fn)
