-- says: kube.watch: .*1000
-- holds: 16 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local open = {}
    for i = 1, 1001 do
        open[i] = kube.watch("kopfexamples") -- HERE
    end
end)
