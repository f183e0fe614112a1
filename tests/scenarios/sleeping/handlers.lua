-- Handlers of two objects wait side by side; those of one object, one after the other.

function slow_fn(ctx)
    ctx.logger:info("begins")
    kopf.sleep(ctx.spec.seconds)
    ctx.logger:info("goes on")
    kopf.sleep("500ms")
    kopf.sleep(0)
    return "slept"
end

function second_fn(ctx)
    ctx.logger:info("the second")
    kopf.sleep("1s")
end

kopf.on_create("kopfexamples", slow_fn)
kopf.on_create("kopfexamples", second_fn)
