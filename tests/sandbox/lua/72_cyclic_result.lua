-- expect: contains itself
-- limit: none
-- A result that contains itself.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    t.t = t
    return t
end)
