-- Handlers of a kind that Kubernetes brings along: each new pod has half a minute to live.

local SECONDS = 30

-- The pods of the cluster itself shall live.
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
