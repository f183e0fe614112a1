-- expect: the filter combines more than 1000 functions
-- limit: none
-- Filters in filters, without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local filter = function() return true end
    while true do filter = kopf.not_(filter) end
end)
