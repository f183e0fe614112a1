-- The first half: one handler is finished, one is retried until somebody else takes over.

function first_fn(_ctx)
    return { by = "begin" }
end

function second_fn(_ctx)
    error(kopf.TemporaryError("Not here.", 0.5))
end

kopf.on_create("kopfexamples", first_fn)
kopf.on_create("kopfexamples", second_fn)
