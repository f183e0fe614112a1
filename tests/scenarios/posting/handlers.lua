-- Events about the handled object and about others. A handler sleeps after it has posted, so that the order of lines is certain.

local other = {apiVersion = "v1", kind = "ConfigMap", metadata = {name = "other", namespace = "ns1", uid = "u-2"}}
local node = {apiVersion = "v1", kind = "Node", metadata = {name = "n1"}}
local event = {apiVersion = "v1", kind = "Event", metadata = {name = "e1", namespace = "ns1"}}

kopf.on_startup(function(ctx)
    ctx.settings.posting.reporting_component = "my-op"
    ctx.settings.posting.reporting_instance = "pod-1"
    ctx.settings.posting.event_name_prefix = "my-op-"
    kopf.info(other, "Starting", "before anybody has logged in")
end)

kopf.on_cleanup(function(ctx)
    kopf.info(other, "Stopping")
end)

kopf.on_create("kopfexamples", {id = "forms"}, function(ctx)
    kopf.event(ctx.body, {type = "Custom", reason = "Named", message = "by name"})
    kopf.event(ctx.body, "Normal", "Positional")
    kopf.info(ctx.body, {reason = "Informed", message = "hello"})
    kopf.warn(ctx.body, "Warned", "careful", {backoffs = {1, "2s"}})
    kopf.info(ctx.body, "Numbered", 42)
    kopf.info(ctx.body, "Long", string.rep("ü", 2000))
    kopf.sleep(1)
end)

kopf.on_create("kopfexamples", {id = "errors"}, function(ctx)
    local _, caught = pcall(function() error(kopf.PermanentError("never")) end)
    kopf.exception(ctx.body, caught)
    kopf.exception(ctx.body, caught, "It happened:")
    kopf.exception(ctx.body, {exc = caught, reason = "Odd", message = "Again:"})
    kopf.exception(ctx.body, "nothing was raised")
    kopf.sleep(1)
end)

kopf.on_create("kopfexamples", {id = "others"}, function(ctx)
    kopf.info({other, {}, {kopf.null, {other}}}, "Listed", "twice")
    kopf.sleep(1)
    kopf.info(node, "Clustered", "where the credentials are")
    kopf.info(event, "Never", "an event about an event")
    kopf.sleep(1)
end)

kopf.on_create("kopfexamples", {id = "mistakes"}, function(ctx)
    local mistakes = {
        function() kopf.event(ctx.body, {reason = "R"}) end,
        function() kopf.info(ctx.body, {message = "m"}) end,
        function() kopf.info(ctx.body, {reason = "R", mesage = "m"}) end,
        function() kopf.warn(ctx.body, {type = "T", reason = "R"}) end,
        function() kopf.warn(ctx.body, "a", "b", "c") end,
        function() kopf.info(ctx.body, {reason = {1}}) end,
        function() kopf.info("one", "R") end,
        function() kopf.info({kind = "Pod"}, "R") end,
        function() kopf.info(ctx.body, "R", {backoffs = "soon"}) end,
    }
    for _, mistake in ipairs(mistakes) do
        local _, problem = pcall(mistake)
        ctx.logger:info((tostring(problem):match("kopf%.%w+: [^\n]*")))
    end
end)

kopf.on_event("kopfexamples", function(ctx)
    if ctx.type == "ADDED" then
        kopf.info(ctx.body, "Seen", "by an event handler")
        kopf.sleep(0.1)
    end
end)

kopf.daemon("kopfexamples", function(ctx)
    kopf.sleep(0.5)
    kopf.info(ctx.body, "Watched", "by a daemon")
    ctx.stopped:wait()
    kopf.info(ctx.body, "Unwatched", tostring(ctx.stopped.reason))
end)
