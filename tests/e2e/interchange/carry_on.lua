-- The second half: the finished handler must not be called again.

function first_fn(_ctx)
    return { by = "carry_on" }
end

function second_fn(ctx)
    if ctx.retry < 2 then
        print("the first attempt")
    end
    return { by = "carry_on" }
end

kopf.on_create("kopfexamples", first_fn)
kopf.on_create("kopfexamples", second_fn)
