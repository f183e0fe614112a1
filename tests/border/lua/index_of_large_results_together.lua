-- says: the indexes of this script hold more than 64 MiB \(settings.sandbox.memory_limit\)
-- holds: 96 MiB
for i = 1, 24 do
    kopf.index("kopfexamples", { id = "i" .. i, labels = { role = "hostile" } }, function(ctx)
        local all = {}
        for j = 1, 9000 do all["k" .. j] = 1 end
        return all
    end)
end
