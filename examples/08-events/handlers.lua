-- Raw watch events: no state is kept, nothing is retried, errors are logged and ignored.

function event_fn_with_error(_ctx)
    error("Oops!")
end

function normal_event_fn(ctx)
    print("Event received: " .. tostring(ctx.event))
end

kopf.on_event("kopfexamples", event_fn_with_error)
kopf.on_event("kopfexamples", normal_event_fn)
