-- Three creation handlers, one with a retry, so that a full run has several handling cycles; and one for the deletion.

function one(_ctx)
    return { done = 1 }
end

function two(ctx)
    if ctx.retry == 0 then
        error(kopf.TemporaryError("Not at once.", 0.2))
    end
    return { done = 2 }
end

function three(_ctx)
    return { done = 3 }
end

function gone(_ctx) end

kopf.on_create("kopfexamples", one)
kopf.on_create("kopfexamples", two)
kopf.on_create("kopfexamples", three)
kopf.on_delete("kopfexamples", gone)
