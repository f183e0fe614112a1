-- Errors where no handler runs: in filters, in transformations, in event handlers. The operator goes on.

local function is_good(ctx)
    if ctx.name == "bad-filter" then
        error("the filter does not work")
    end
    return true
end

local function has_good_color(value, ctx)
    if value == "broken" then
        error("the label filter does not work")
    end
    return true
end

function create_fn(ctx)
    ctx.logger:info("created")
    if ctx.name == "bad-transformation" then
        ctx.patch.status.before = true
        ctx.patch.fns:append(function(body)
            error("the transformation does not work")
        end)
    end
end

function labelled_fn(ctx)
    ctx.logger:info("labelled")
end

function event_fn(ctx)
    if ctx.name == "bad-event" then
        error("the event handler does not work")
    end
end

function permanent_event_fn(ctx)
    if ctx.name == "bad-event" then
        error(kopf.PermanentError("never"))
    end
end

kopf.on_create("kopfexamples", { when = is_good }, create_fn)
kopf.on_create("kopfexamples", { labels = { color = has_good_color } }, labelled_fn)
kopf.on_event("kopfexamples", event_fn)
kopf.on_event("kopfexamples", permanent_event_fn)
