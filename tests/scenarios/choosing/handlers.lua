-- Functions as resource selectors.

local function tell(id)
    return function(ctx)
        ctx.logger:info("found by " .. id .. ": " .. ctx.resource.plural)
    end
end

local function by_group(resource)
    return resource.group == "kopf.dev" and resource.preferred and resource.namespaced
end

local function by_lists(resource)
    return table.find(resource.shortcuts, "kex") ~= nil and table.find(resource.verbs, "watch") ~= nil
end

local function every_one(resource)
    return resource
end

local function none(resource)
    return resource.plural == "unicorns"
end

local function broken(resource)
    if resource.plural == "kopfexamples" then
        error("who knows")
    end
    return false
end

kopf.on_event(by_group, { id = "by_group" }, tell("by_group"))
kopf.on_event(by_lists, { id = "by_lists" }, tell("by_lists"))
kopf.on_event(every_one, { id = "within", group = "kopf.dev", version = "v1" }, tell("within"))
kopf.on_event(none, { id = "none" }, tell("none"))
kopf.on_event(broken, { id = "broken" }, tell("broken"))
