-- says: kube.exec: `command`: expected at most 1000 strings and 32768 bytes, got 20001 strings
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local command = {}
    for i = 1, 20001 do command[i] = "xxxxxxxxxx" end
    kube.exec("p", command) -- HERE
end)
