-- expect: the result is larger than 64 KiB
-- limit: result
-- A result of many items.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for i = 1, 20000 do t[i] = i + 1000000 end
    return t
end)
