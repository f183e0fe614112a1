-- A Job whose pods know their index: `completions` pods in all, at most `parallelism` of them at a time.
-- Metacontroller's sample IndexedJob, written from its description.

local function pod(ctx, index)
    return {
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = `{ctx.name}-{index}`, labels = { job = ctx.name } },
        spec = {
            restartPolicy = "OnFailure",
            containers = {
                {
                    name = "main",
                    image = ctx.spec.image,
                    command = ctx.spec.command,
                    env = { { name = "JOB_INDEX", value = tostring(index) } },
                },
            },
        },
    }
end

kopf.reconcile("indexedjobs", { owns = "pods" }, function(ctx)
    local counts = { active = 0, succeeded = 0, failed = 0 }
    local children = {}
    for index = 0, ctx.spec.completions - 1 do
        local present = ctx.children.pods[`{ctx.name}-{index}`]
        local phase = present and kopf.get(present, "status.phase")
        if phase == "Succeeded" then
            counts.succeeded += 1
        elseif phase == "Failed" then
            counts.failed += 1
        elseif counts.active < ctx.spec.parallelism then
            counts.active += 1
        else
            continue -- it starts when another one has ended
        end
        -- Pods that have ended stay, with their logs.
        table.insert(children, pod(ctx, index))
    end
    local is_complete = counts.succeeded == ctx.spec.completions
    return {
        children = children,
        status = counts,
        conditions = {
            { type = "Complete", status = is_complete },
            { type = "Failed", status = counts.failed > 0 },
        },
    }
end)
