-- Fails where it is assigned, not where somebody reads it.
-- says: memo.f: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.memo.f = function() end -- HERE
end)
