-- A Service for each pod of a StatefulSet that has the annotation `example.com/ports`, such as "80:8080,443": each pod gets an address.
-- Metacontroller's sample ServicePerPod, written from its description: it adds to objects that belong to others.

local function ports(text)
    local all = {}
    for port, target in string.gmatch(text, "(%d+):?(%d*)") do
        local number = tonumber(port)
        table.insert(all, { name = `port-{port}`, port = number, targetPort = tonumber(target) or number })
    end
    return all
end

kopf.reconcile("statefulsets", { id = "service-per-pod", owns = "services" }, function(ctx)
    local text = ctx.annotations["example.com/ports"]
    local children = {}
    -- Without the annotation, there are no Services: those from before are deleted.
    for index = 0, text and ctx.spec.replicas - 1 or -1 do
        local pod = `{ctx.name}-{index}`
        table.insert(children, {
            apiVersion = "v1",
            kind = "Service",
            metadata = { name = pod },
            spec = { selector = { ["statefulset.kubernetes.io/pod-name"] = pod }, ports = ports(text) },
        })
    end
    return { children = children }
end)
