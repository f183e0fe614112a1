-- How the values of an object change with it, and what errors of index functions do to them.

-- As the object says.
function mapped(ctx)
    if ctx.spec.raise == "temporary" then
        ctx.logger:warning("attempt " .. ctx.retry .. " after " .. ctx.runtime)
        error(kopf.TemporaryError("later", 30))
    elseif ctx.spec.raise == "permanent" then
        error(kopf.PermanentError("never"))
    elseif ctx.spec.raise == "any" then
        error({})
    end
    return ctx.spec.result
end

function retried(ctx)
    if ctx.spec.raise == "any" then
        ctx.logger:warning("attempt " .. ctx.retry .. " after " .. ctx.runtime)
        error({})
    end
    return ctx.spec.result
end

function seen(ctx)
    ctx.logger:info((ctx.type or "LISTED") .. " " .. ctx.name .. " mapped " .. tostring(ctx.mapped) .. " retried " .. tostring(ctx.retried))
end

kopf.index("kopfexamples", { labels = { off = kopf.ABSENT } }, mapped)
kopf.index("kopfexamples", { errors = "temporary", backoff = 5, retries = 2 }, retried)
kopf.on_event("kopfexamples", seen)
