-- The smallest operator: one handler, called once for every new object.

function create_fn(ctx)
    print("And here we are! Creating: " .. tostring(ctx.spec))
    return { message = "hello world" } -- is stored in status.create_fn
end

kopf.on_create("kopfexamples", create_fn)
