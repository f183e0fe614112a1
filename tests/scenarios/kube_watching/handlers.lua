-- The cluster client: watches and waits.

local function shown(data)
    if data == nil then
        return "nil"
    end
    local parts = {}
    for key, value in pairs(data) do
        parts[#parts + 1] = string.format("%q:%q", key, value)
    end
    table.sort(parts)
    return "{" .. table.concat(parts, ",") .. "}"
end

function watch_fn(ctx)
    for event in kube.watch("configmaps") do
        ctx.logger:info(event.type .. " " .. event.object.metadata.name .. " " .. shown(event.object.data))
    end
    ctx.logger:info("the watch has ended: " .. tostring(ctx.stopped()))
    ctx.logger:info("so does a wait: " .. tostring(kube.wait(ctx, "condition=Never") == nil))
end

function wait_fn(ctx)
    local ready = kube.wait(ctx, "condition=Ready", 10)
    ctx.logger:info("ready: " .. ready.status.conditions[1].status)
    local c = kube.wait({ apiVersion = "v1", kind = "ConfigMap", name = "c" }, "created")
    ctx.logger:info("created: " .. c.metadata.name)
    ctx.logger:info("deleted: " .. tostring(kube.wait(c, "deleted", "1m")))
    ctx.logger:info("deleted: " .. tostring(kube.wait(c, "deleted")))
    local ok, e = pcall(function() kube.wait(ctx, "condition=Ready=False", 2) end)
    ctx.logger:info(tostring(ok) .. " " .. e.reason .. ": " .. e)
end

function leave_fn(ctx)
    for event in kube.watch("configmaps", { name = "a" }) do
        ctx.logger:info("left after " .. event.object.metadata.name)
        break
    end
    local count = 0
    for event in kube.watch("configmaps", { timeout = 5, field_selector = "metadata.name=a" }) do
        count = count + 1
    end
    ctx.logger:info("timed out after " .. count)
    for event in kube.watch("unicorns") do
        ctx.logger:info("never")
    end
end

kopf.daemon("kopfexamples", { field = "spec.watch" }, watch_fn)
kopf.on_create("kopfexamples", { field = "spec.wait" }, wait_fn)
kopf.on_create("kopfexamples", { field = "spec.leave", errors = "permanent" }, leave_fn)
