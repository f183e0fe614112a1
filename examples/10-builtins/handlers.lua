-- Handlers of a built-in kind: each new pod is deleted after half a minute.

local SECONDS = 30

-- Excludes the pods of the cluster itself.
local function is_ours(ctx)
    return ctx.namespace:sub(1, 5) ~= "kube-"
end

function pod_killer(ctx)
    ctx.logger:info(`=== Pod killing happens in {SECONDS}s.`)
    if ctx.stopped:wait(SECONDS) then
        ctx.logger:info("=== Pod killing is cancelled!")
        return
    end
    ctx.logger:info("=== Pod killing happens NOW!")
    kube.delete(ctx.body)
end

kopf.daemon("pods", { when = is_ours }, pod_killer)
