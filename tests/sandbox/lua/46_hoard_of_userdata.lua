-- expect: needs more than 16 MiB
-- limit: memory
-- Objects of the host without an end.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for i = 1, 1e9 do t[i] = kopf.TemporaryError('x' .. i) end
end)
