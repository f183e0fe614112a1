-- In-memory indexes, filled from some objects and read by the handlers of others.

-- Whether each pod is running, by namespace and name.
function is_running(ctx)
    return { [ctx.namespace .. "::" .. ctx.name] = ctx.status.phase == "Running" }
end

-- The names of pods, by each of their labels.
function by_label(ctx)
    local names = {}
    for label, value in pairs(ctx.labels) do
        names[label .. "=" .. value] = ctx.name
    end
    return names
end

function intervalled(ctx)
    print(ctx.by_label)
    local running = kopf.array()
    for key, values in pairs(ctx.is_running) do
        local namespace = string.split(key, "::")[1]
        local is_near = namespace == "kube-system" or namespace == "default" or namespace == ctx.namespace
        if is_near and values[1] then
            table.insert(running, key)
        end
    end
    ctx.patch.status["running-pods"] = running
end

-- Probes can read the indexes, too: with --liveness=http://0.0.0.0:8080/healthz, that URL returns these results.
function pod_count(ctx)
    return #ctx.is_running
end

function pod_names(ctx)
    local names = kopf.array()
    for name in pairs(ctx.is_running) do
        table.insert(names, name)
    end
    table.sort(names)
    return names
end

kopf.index("pods", is_running)
kopf.index("pods", by_label)
kopf.timer("kopfexamples", { interval = 5 }, intervalled)
kopf.on_probe(pod_count)
kopf.on_probe(pod_names)
