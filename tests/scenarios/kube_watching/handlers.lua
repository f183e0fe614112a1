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

local function count_of(object)
    return object and object.data and tonumber(object.data.n) or 0
end

function ask_fn(ctx)
    local reference = { apiVersion = "v1", kind = "ConfigMap", name = "d" }
    local seen = {}
    local function is_two(object)
        seen[#seen + 1] = count_of(object)
        -- It may wait, and use the cluster.
        kopf.sleep(0.1)
        assert(kube.get("configmaps", { name = "a" }))
        return count_of(object) == 2
    end
    local d = kube.wait(reference, is_two, "20s")
    ctx.logger:info("d is " .. d.data.n .. " after " .. table.concat(seen, " "))
    ctx.logger:info("gone: " .. tostring(kube.wait(d, function(object) return object == nil end)))
    local ok, e = pcall(function() kube.wait(reference, function() return false end, 2) end)
    ctx.logger:info(tostring(ok) .. " " .. e.reason .. ": " .. e)
    ok, e = pcall(function() kube.wait(reference, function() return true end, { namespace = "*" }) end)
    ctx.logger:info(tostring(ok) .. " " .. string.gsub(tostring(e), "^[%w_./]+:%d+: ", ""))
    ctx.logger:info("elsewhere: " .. tostring(kube.wait(reference, function(it) return it == nil end, { namespace = "ns2" })))
    kube.wait(ctx, function(object) error("the predicate fails") end)
end

function until_fn(ctx)
    local ended = kube.wait(ctx, function(object) return object.spec.never end, "1h")
    ctx.logger:info("the daemon has waited until its end: " .. tostring(ended == nil))
end

kopf.daemon("kopfexamples", { field = "spec.until" }, until_fn)
kopf.on_create("kopfexamples", { field = "spec.ask", errors = "permanent" }, ask_fn)
kopf.daemon("kopfexamples", { field = "spec.watch" }, watch_fn)
kopf.on_create("kopfexamples", { field = "spec.wait" }, wait_fn)
kopf.on_create("kopfexamples", { field = "spec.leave", errors = "permanent" }, leave_fn)
