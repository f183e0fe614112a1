-- Kubernetes events about the handled object: what `kubectl describe` shows at its end.

function create_fn(ctx)
    -- With a type of one's own.
    kopf.event(ctx.body, { type = "SomeType", reason = "SomeReason", message = "Some message" })

    -- The usual types.
    kopf.info(ctx.body, "SomeReason", "Some message")
    kopf.warn(ctx.body, "SomeReason", "Some message")

    -- Of an error, with its text after the message.
    local ok, problem = pcall(error, kopf.PermanentError("Exception text."))
    if not ok then
        kopf.exception(ctx.body, { exc = problem, reason = "SomeReason", message = "Some exception:" })
    end
end

kopf.on_create("kopfexamples", create_fn)
