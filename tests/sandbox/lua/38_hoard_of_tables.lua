-- expect: needs more than 16 MiB of memory
-- limit: memory
-- Tables without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for i = 1, 1e9 do t[i] = { i } end
end)
