-- A policy for pods: only images of known registries, resources for each container, and a quota of pods per team.

local REGISTRIES = { "registry.k8s.io/", "ghcr.io/example/" }
local DEFAULT_RESOURCES = { requests = { cpu = "100m", memory = "128Mi" }, limits = { memory = "256Mi" } }
local QUOTA = 3

-- Counts pods by team, without asking the API server for each request.
kopf.index("pods", { id = "pods_by_team", labels = { team = kopf.PRESENT } }, function(ctx)
    return { [ctx.labels.team] = ctx.uid }
end)

local function is_known(image)
    return lists.any(REGISTRIES, function(registry)
        return strings.starts_with(image, registry)
    end)
end

---@param ctx kopf.AdmissionCtx
function known_registries(ctx)
    for _, container in ctx.spec.containers do
        if not is_known(container.image) then
            error(kopf.AdmissionError(`the image {container.image} is not from an allowed registry: {table.concat(REGISTRIES, ", ")}`, 403))
        end
    end
end
kopf.on_validate("pods", { operations = { "CREATE", "UPDATE" } }, known_registries)

---@param ctx kopf.AdmissionCtx
function quota(ctx)
    local team = ctx.labels.team
    if team == nil then
        ctx.warn("label `team` will be required soon")
        return
    end
    if #(ctx.pods_by_team[team] or {}) >= QUOTA then
        error(kopf.AdmissionError(`team {team} has {QUOTA} pods already`, 403))
    end
end
kopf.on_validate("pods", { operations = { "CREATE" } }, quota)

---@param ctx kopf.AdmissionCtx
function default_resources(ctx)
    ctx.patch.fns:append(function(body)
        for _, container in body.spec.containers do
            if next(container.resources or {}) == nil then
                container.resources = DEFAULT_RESOURCES
            end
        end
    end)
end
kopf.on_mutate("pods", { operations = { "CREATE" } }, default_resources)
