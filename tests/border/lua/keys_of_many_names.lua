-- says: crypto.certificate: `names`: expected at most 1000, got 20000
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local names = {}
    for i = 1, 20000 do names[i] = "a" .. i end
    crypto.certificate({ names = names }) -- HERE
end)
