-- A function that filters differs.

local function examples(resource)
    if resource.plural == "kopfexamples" then
        print("is asked about kopfexamples")
    end
    return resource.plural == "kopfexamples"
end

local function wanted(resource)
    local word = "configmaps"
    if resource.plural == word then
        print(`chooses {word}`)
    end
    return resource.plural == word
end

kopf.daemon(examples, {
    id = "kept",
    when = kopf.all_({ function(ctx) return ctx.name ~= "other" end }),
    labels = { watch = function(value) return value ~= "no" end },
    initial_delay = function() return 0.1 end,
}, function(ctx)
    ctx.logger:info("begins")
    ctx.stopped:wait(1000)
    kopf.sleep(0.5)
    ctx.logger:info(`ends: {ctx.stopped.reason}`)
end)

kopf.timer(examples, { id = "tick", interval = 10, initial_delay = 3, when = function() return true end }, function(ctx)
    ctx.logger:info("ticks")
end)

kopf.on_event(examples, { id = "seen", when = function(ctx) return ctx.type ~= "DELETED" end }, function(ctx)
    ctx.logger:info(`looks at {ctx.spec.field}`)
end)

kopf.index(examples, { id = "fields", when = function(ctx) return true end }, function(ctx)
    ctx.logger:info("is indexed")
    return { [ctx.name] = ctx.spec.field }
end)

kopf.on_create(examples, { id = "make", when = function(ctx) return ctx.name ~= "other" end }, function(ctx)
    ctx.logger:info(`attempt {ctx.retry}`)
    kopf.retry("not yet", 600)
end)

kopf.on_create(wanted, { id = "chosen" }, function(ctx)
    ctx.logger:info(`is chosen: {ctx.resource.plural}`)
end)
