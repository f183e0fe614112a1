-- Kinds of errors: permanent, temporary, and unexpected ones with a limited number of retries.

function instant_failure_with_only_a_message(_ctx)
    error(kopf.PermanentError("Fail once and for all."))
end

function eventual_success_with_a_few_messages(ctx)
    if ctx.retry < 3 then -- 0, 1, 2
        error(kopf.TemporaryError("Expected recoverable error.", 1))
    end
end

-- Any other error is unexpected: it is logged with a stack trace, and retried.
function eventual_failure_with_tracebacks(_ctx)
    error("An error that is supposed to be recoverable.")
end

function instant_failure_with_traceback(_ctx)
    error("An error that is supposed to be recoverable.")
end

kopf.on_create("kopfexamples", instant_failure_with_only_a_message)
kopf.on_create("kopfexamples", eventual_success_with_a_few_messages)
kopf.on_create("kopfexamples", { retries = 3, backoff = 1 }, eventual_failure_with_tracebacks)
kopf.on_create("kopfexamples", { errors = "permanent", backoff = 1 }, instant_failure_with_traceback)
