-- says: the result has 10001 entries: an object can have at most 10000 in an index
-- holds: 8 MiB
kopf.index("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local all = {}
    for i = 1, 10001 do all["k" .. i] = 1 end
    return all
end)
