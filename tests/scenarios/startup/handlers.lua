-- The operator's own start and end.

local attempts = 0

function first_fn(ctx)
    attempts = attempts + 1
    ctx.logger:info("attempt " .. ctx.retry .. " of " .. ctx.activity .. ", " .. attempts .. " calls")
    if ctx.retry == 0 then
        kopf.retry("not yet", 2)
    elseif ctx.retry == 1 then
        error("still not")
    end
    return { ignored = true }
end

function settings_fn(ctx)
    local settings = ctx.settings
    ctx.logger:info("backoff " .. settings.execution.default_backoff .. ", finalizer " .. settings.persistence.finalizer)
    settings.execution.default_backoff = 7
    settings.queueing.error_delays = { 1, "2s", 3 }
    settings.persistence.finalizer = "example.com/finalizer"
    settings.posting.enabled = false
    settings.watching.server_timeout = "10m"
    settings.execution.max_workers = 5
    ctx.logger:info("changed " .. settings.execution.default_backoff .. " " .. tostring(settings.queueing.error_delays) .. " " .. settings.watching.server_timeout)
end

local function refused(ctx, change)
    local ok, problem = pcall(change)
    ctx.logger:info("refused " .. tostring(not ok))
end

function wrong_settings_fn(ctx)
    refused(ctx, function() ctx.settings.execution.default_backoff = "soon" end)
    refused(ctx, function() ctx.settings.execution.no_such = 1 end)
    refused(ctx, function() ctx.settings.no_such.thing = 1 end)
    refused(ctx, function() ctx.settings.execution = {} end)
    refused(ctx, function() return ctx.settings.posting.no_such end)
end

function wrong_value_fn(ctx)
    ctx.settings.execution.default_backoff = "soon"
end

function create_fn(ctx)
    if ctx.retry == 0 then
        error("the default backoff is the new one")
    end
end

function delete_fn(ctx)
    ctx.logger:info("held by " .. tostring(ctx.meta.finalizers))
end

function cleanup_fn(ctx)
    kopf.sleep(3)
    ctx.logger:info("cleaned up, " .. ctx.activity)
end

kopf.on_startup({ backoff = 1 }, first_fn)
kopf.on_startup(settings_fn)
kopf.on_startup(wrong_settings_fn)
kopf.on_startup({ errors = "ignored" }, wrong_value_fn)
kopf.on_cleanup(cleanup_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_delete("kopfexamples", delete_fn)
