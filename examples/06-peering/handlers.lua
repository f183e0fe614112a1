-- One handler that does nothing: the log shows which of several operators calls it.

function create_fn(ctx)
end

kopf.on_create("kopfexamples", create_fn)
