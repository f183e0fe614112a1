-- An operator with a test: see test.sh.

function create_fn(ctx)
    ctx.logger:info("Something was logged here.")
end

kopf.on_create("kopfexamples", create_fn)
