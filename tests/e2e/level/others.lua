-- Another script, which needs the same lock.

local function say(ctx, what)
    local metadata = { name = what, namespace = ctx.namespace }
    kube.create({ apiVersion = "v1", kind = "ConfigMap", metadata = metadata }, { exists_ok = true })
end

kopf.on_create("kopfexamples", { id = "waits" }, function(ctx)
    while not kube.get("configmaps", { name = "lock-is-held" }) do
        kopf.sleep(0.1)
    end
    local value, problem = kopf.try(kopf.lock, "pool", { timeout = 0.1 }, function() return "no" end)
    if value == nil and string.find(tostring(problem), "holds") then
        say(ctx, "holder-is-named")
    end
    say(ctx, "lock-" .. kopf.lock("pool", function() return kopf.lock(ctx, function() return "of-an-object" end) end))
end)
