-- expect: needs more than 16 MiB of memory
-- limit: memory
-- Functions that keep each other.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local f = function() end
    while true do
        local g = f
        f = function() return g end
    end
end)
