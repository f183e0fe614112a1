-- Kubernetes events about the handled object: `kubectl describe` shows them at its end.

function create_fn(ctx)
    -- An event with a custom type.
    kopf.event(ctx.body, { type = "SomeType", reason = "SomeReason", message = "Some message" })

    -- Events with the standard types.
    kopf.info(ctx.body, "SomeReason", "Some message")
    kopf.warn(ctx.body, "SomeReason", "Some message")

    -- An event about an error, with its text after the message.
    local ok, problem = pcall(error, kopf.PermanentError("Exception text."))
    if not ok then
        kopf.exception(ctx.body, { exc = problem, reason = "SomeReason", message = "Some exception:" })
    end
end

kopf.on_create("kopfexamples", create_fn)
