-- expect: needs more than 16 MiB of memory
-- limit: memory
-- The error of a full memory cannot be caught.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    while true do
        pcall(function() for i = #t + 1, 1e9 do t[i] = { i } end end)
    end
end)
