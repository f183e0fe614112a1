kopf.on_create("kopfexamples", { id = "first" }, function(ctx) ctx.logger:info("first of " .. ctx.name) end)
kopf.on_create("kopfexamples", { id = "second", backoff = 600 }, function(ctx)
    if ctx.name == "failed" then error(kopf.PermanentError("never")) end
    if ctx.name == "half" and ctx.retry == 0 then error(kopf.TemporaryError("not yet", 600)) end
    ctx.logger:info("second of " .. ctx.name .. " in attempt " .. (ctx.retry + 1))
    return { attempts = ctx.retry + 1 }
end)
kopf.on_update("kopfexamples", { id = "changed" }, function(ctx) ctx.logger:info("changed " .. ctx.name) end)
kopf.on_delete("kopfexamples", { id = "gone" }, function(ctx)
    if ctx.retry == 0 then error(kopf.TemporaryError("not yet", 600)) end
    ctx.logger:info("gone " .. ctx.name .. " in attempt " .. (ctx.retry + 1))
end)
kopf.on_create("secrets", { id = "secret" }, function(ctx) ctx.logger:info("secret " .. ctx.name) end)
kopf.on_update("secrets", { id = "rotated" }, function(ctx)
    ctx.logger:info("rotated " .. ctx.name)
end)
