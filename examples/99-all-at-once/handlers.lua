-- All kinds of handlers in one operator.

function startup_fn_simple(ctx)
    ctx.logger:info("Starting in 1s...")
    kopf.sleep(1)
end

function startup_fn_retried(ctx)
    if ctx.retry < 3 then
        error(kopf.TemporaryError(`Going to succeed in {3 - ctx.retry}s`, 1))
    end
    ctx.logger:info("Starting retried...")
end

function cleanup_fn(ctx)
    ctx.logger:info("Cleaning up for 3s...")
    kopf.sleep(3)
end

-- Results and events.
function create_1(ctx)
    local children = kopf.array()
    kopf.info(ctx.body, "AnyReason")
    kopf.event(children, "Normal", "SomeReason", "Some message") -- an empty list of objects: nothing is posted
    kopf.warn(ctx.body, "SomeReason", "Cannot do something")
    return { ["job1-status"] = 100 }
end

-- Slow, and fails once: meanwhile the other handlers are called.
function create_2(ctx)
    kopf.sleep(1)
    if ctx.retry == 0 then
        error("Whoops!")
    end
    return { ["job2-status"] = 100 }
end

-- A retry creates no second Pod: its name is derived from the name of the object.
function create_pod(ctx)
    local pod = {
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = ctx.name },
        spec = { containers = { { name = "main", image = "busybox", command = { "sleep", "3600" } } } },
    }
    kopf.adopt(pod)
    kopf.label(pod, { application = "kopf-example-10" })
    kube.apply(pod)
end

function update(ctx)
    ctx.logger:info(`Handling the diff: {ctx.diff}`)
end

function field_fn(ctx)
    ctx.logger:info(`The list is now {ctx.new}, and was {ctx.old or "not there"}`)
end

function delete(ctx)
    ctx.logger:info("Good bye.")
end

function special_pods(ctx)
    ctx.logger:info("This pod is special for us.")
end

kopf.on_startup(startup_fn_simple)
kopf.on_startup(startup_fn_retried)
kopf.on_cleanup(cleanup_fn)
kopf.on_create("kopfexamples", create_1)
kopf.on_create("kopfexamples", create_2)
kopf.on_create("kopfexamples", create_pod)
kopf.on_update("kopfexamples", update)
kopf.on_field("kopfexamples", { field = "spec.lst" }, field_fn)
kopf.on_delete("kopfexamples", delete)
kopf.on_event("pods", { labels = { application = "kopf-example-10" } }, special_pods)
