local CONFIGS = "usernamespaceconfigs.example.com"

-- "Ann Example@example.com" becomes "ann-example-example-com".
template.filter("dns_label", function(text)
    return strings.truncate(re.replace("[^a-z0-9]+", string.lower(text), "-"), 63, "")
end)

local function rendered(text, values)
    local done, problem = kopf.try_call(template.render, text, values)
    if problem then
        kopf.fail(tostring(problem.message or problem))
    end
    return done
end

function provide(ctx)
    local config = kube.get(CONFIGS, { name = ctx.spec.config })
    if not config then
        kopf.retry(`there is no UserNamespaceConfig {ctx.spec.config}`, 30)
    end
    local values = { user = ctx.spec.user, groups = ctx.spec.groups or kopf.array(), config = config.spec }
    values.namespace = rendered(config.spec.namespace, values)
    kube.apply({
        apiVersion = "v1",
        kind = "Namespace",
        metadata = { name = values.namespace, labels = { ["example.com/user-namespace"] = ctx.name } },
    })
    local count = 0
    for _, text in config.spec.resources or {} do
        for _, resource in yaml.decode_all(rendered(text, values)) do
            resource.metadata.namespace = values.namespace
            kube.apply(resource)
            count += 1
        end
    end
    ctx.patch.status.namespace = values.namespace
    ctx.patch.status.resources = count
end

function remove(ctx)
    if ctx.status.namespace then
        kube.delete({ apiVersion = "v1", kind = "Namespace", metadata = { name = ctx.status.namespace } })
    end
end

kopf.on_create("usernamespaces.example.com", provide)
kopf.on_update("usernamespaces.example.com", { field = "spec" }, provide)
kopf.on_delete("usernamespaces.example.com", remove)
