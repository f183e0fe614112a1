-- expect: needs more than 16 MiB of memory
-- limit: memory
-- Many different texts.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = {}
    for i = 1, 1e9 do t[i] = "text number " .. i .. string.rep("x", 1000) end
end)
