-- expect: ok
-- limit: none
-- Limits are not a script's to change: there are no settings in a handler of an object.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    assert(ctx.settings == nil or not pcall(function() ctx.settings.sandbox.memory_limit = 1e12 end))
    return "fine"
end)
