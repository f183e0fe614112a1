-- What the operator does for itself: before it looks at the cluster, and after it has stopped.

local ready = false -- kept by the script while the operator runs

function startup_fn_simple(ctx)
    ctx.logger:info("Initialising the task-lock...")
    ready = true
end

-- The operator waits until it succeeds: nothing is watched before.
function startup_fn_retried(ctx)
    if ctx.retry < 3 then
        error(kopf.TemporaryError(`Going to succeed in {3 - ctx.retry}s`, 1))
    end
    ctx.logger:info("Starting retried...")
end

function cleanup_fn(ctx)
    ctx.logger:info("Cleaning up...")
    ready = false
    ctx.logger:info("All pod-tasks are requested to stop...")
end

-- A raw event of any pod: shows that the state made at startup is there.
function pod_task(ctx)
    if ready then
        ctx.logger:info("Served while the operator runs.")
    end
end

kopf.on_startup(startup_fn_simple)
kopf.on_startup(startup_fn_retried)
kopf.on_cleanup(cleanup_fn)
kopf.on_event("pods", pod_task)
