-- One handler that does nothing: what is to be seen is which of several operators calls it.

function create_fn(ctx)
end

kopf.on_create("kopfexamples", create_fn)
