-- Handlers of the operator itself: before it connects to the cluster, while it runs, and after it has stopped.

local ready = false -- kept in the script while the operator runs
local monitored = {} -- the names of pods, by namespace
local tasks_count = 0

function startup_fn_simple(ctx)
    ctx.logger:info("Initialising the task-lock...")
    ready = true
end

-- The operator waits until this handler succeeds: nothing is watched before.
function startup_fn_retried(ctx)
    if ctx.retry < 3 then
        error(kopf.TemporaryError(`Going to succeed in {3 - ctx.retry}s`, 1))
    end
    ctx.logger:info("Starting retried...")
end

-- Replaces the default authentication; an error here is permanent.
function login_fn(ctx)
    print("Logging in in 2s...")
    kopf.sleep(2)
    return kopf.login_with_kubeconfig(ctx) or kopf.login_with_service_account(ctx)
end

function cleanup_fn(ctx)
    ctx.logger:info("Cleaning up...")
    ready = false
    ctx.logger:info("All pod-tasks are requested to stop...")
end

function probe_tasks_count(ctx)
    return tasks_count
end

function probe_monitored_objects(ctx)
    return monitored
end

-- A raw event of any pod.
function pod_task(ctx)
    if not ready or ctx.type == "DELETED" then
        return
    end
    local names = monitored[ctx.namespace] or {}
    if not table.find(names, ctx.name) then
        table.insert(names, ctx.name)
        tasks_count += 1
    end
    monitored[ctx.namespace] = names
end

kopf.on_startup(startup_fn_simple)
kopf.on_startup(startup_fn_retried)
kopf.on_login({ errors = "permanent" }, login_fn)
kopf.on_probe({ id = "tasks_count" }, probe_tasks_count)
kopf.on_probe({ id = "monitored_objects" }, probe_monitored_objects)
kopf.on_cleanup(cleanup_fn)
kopf.on_event("pods", pod_task)
