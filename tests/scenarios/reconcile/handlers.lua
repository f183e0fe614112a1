-- Children from a function.

local function child(name, value)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { value = value } }
end

local function of_secret(ctx)
    return { name = ctx.labels.of, namespace = ctx.namespace }
end

function finalize(ctx)
    ctx.logger:info("finalizes")
    if ctx.retry < 1 then
        kopf.retry("not yet", 5)
    end
end

function web(ctx)
    local names = {}
    for name in ctx.children.configmaps do
        table.insert(names, name)
    end
    table.sort(names)
    ctx.logger:info("sees " .. strings.join(names, " "))
    if ctx.spec.mistake == "nothing" then
        return nil
    elseif ctx.spec.mistake == "number" then
        return 5
    elseif ctx.spec.mistake == "retry" then
        kopf.retry("later", 100)
    elseif ctx.spec.mistake == "fail" then
        kopf.fail("never")
    end
    local children = {}
    for _, name in ctx.spec.children do
        table.insert(children, child(name, ctx.spec.value))
    end
    return {
        children = children,
        status = { seen = #names },
        conditions = { { type = "Ready", status = #names == #children } },
    }
end

kopf.reconcile("kopfexamples", {
    initial_delay = 1,
    owns = "configmaps",
    watches = { { "secrets", map = of_secret } },
    finalize = finalize,
}, web)
