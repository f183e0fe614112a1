-- expect: needs more than 16 MiB of memory
-- limit: memory
-- The memory is full in a coroutine, whose error the script gets as a value.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    while true do
        coroutine.resume(coroutine.create(function() while true do t[#t + 1] = { #t } end end))
    end
end)
