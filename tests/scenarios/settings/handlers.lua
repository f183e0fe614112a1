-- Every way to read and to change settings.

local function refused(ctx, change)
    local ok, problem = pcall(change, ctx.settings)
    local text = string.match(tostring(problem), "^[^\n]*")
    text = string.gsub(text, "^handlers.lua:%d+: ", "")
    ctx.logger:info(ok and "taken" or "refused: " .. text)
end

function reading_fn(ctx)
    local settings = ctx.settings
    ctx.logger:info(tostring(settings.background))
    ctx.logger:info(tostring(settings.peering.namespaced) .. " " .. tostring(settings.networking.error_backoffs))
    ctx.logger:info(tostring(settings.persistence.progress_storage))
    ctx.logger:info(tostring(settings.persistence.diffbase_storage))
end

function writing_fn(ctx)
    local settings = ctx.settings
    settings.posting.level = "warning"
    settings.batching.idle_timeout = "7s"
    settings.queueing.batch_window = 5
    settings.execution.max_workers = 2
    settings.watching.label_selectors["pods"] = "a=b"
    settings.watching.label_selectors[{ "v1", "secrets" }] = "c=d"
    settings.watching.field_selectors[kopf.EVERYTHING] = "metadata.namespace!=kube-system"
    settings.watching.field_selectors[kopf.EVERYTHING] = kopf.null
    settings.watching.shard_selectors = { kopfexamples = "x" }
    settings.watching.shard_selectors = {}
    settings.peering.namespaced = false
    settings.persistence.progress_storage = kopf.MultiProgressStorage({
        kopf.StatusProgressStorage({ field = "status.{name}", name = "mine" }),
        kopf.AnnotationsProgressStorage({ prefix = "my.example.com", v1 = false }),
    })
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage({ prefix = "my.example.com", ignored_fields = { "spec.noise" } })
    ctx.logger:info(settings.posting.level .. " " .. settings.queueing.idle_timeout .. " " .. settings.queueing.batch_window)
    ctx.logger:info(tostring(settings.watching.label_selectors) .. " " .. settings.watching.label_selectors["v1/secrets"])
    ctx.logger:info(tostring(settings.watching.field_selectors) .. " " .. tostring(settings.watching.shard_selectors))
    ctx.logger:info(tostring(settings.peering.clusterwide))
    ctx.logger:info(tostring(settings.persistence.progress_storage))
end

function refusing_fn(ctx)
    refused(ctx, function(settings) settings.queueing.worker_limits = 1 end)
    refused(ctx, function(settings) settings.queueing.worker_limit = 0 end)
    refused(ctx, function(settings) settings.queueing.worker_limit = kopf.null end)
    refused(ctx, function(settings) settings.execution.max_workers = 0 end)
    refused(ctx, function(settings) settings.execution.executor = "pool" end)
    refused(ctx, function(settings) settings.admission.managed = 5 end)
    refused(ctx, function(settings) settings.queueing = {} end)
    refused(ctx, function(settings) settings.watching.label_selectors["pods"] = 1 end)
    refused(ctx, function(settings) settings.watching.label_selectors["v1//pods"] = "a" end)
    refused(ctx, function(settings) settings.persistence.progress_storage = "memory" end)
    refused(ctx, function(settings) settings.persistence.progress_storage = kopf.StatusDiffBaseStorage() end)
    refused(ctx, function() kopf.AnnotationsProgressStorage({ prefix = "" }) end)
    refused(ctx, function() kopf.AnnotationsProgressStorage({ prefx = "a" }) end)
    refused(ctx, function() kopf.StatusProgressStorage({ field = 5 }) end)
    refused(ctx, function() kopf.MultiDiffBaseStorage({}) end)
    refused(ctx, function() kopf.SmartStorage() end)
end

function create_fn(ctx)
    if ctx.retry == 0 then
        kopf.retry("once more", 1)
    end
end

function update_fn(ctx)
    ctx.logger:info("changed " .. tostring(ctx.diff))
end

kopf.on_startup(reading_fn)
kopf.on_startup(writing_fn)
kopf.on_startup(refusing_fn)
kopf.on_create("kopfexamples", create_fn)
kopf.on_update("kopfexamples", update_fn)
