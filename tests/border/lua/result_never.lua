-- says: used more than 1 s of CPU time and was aborted \(settings.execution.cpu_limit\)
-- limit: cpu
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local count = 0
    while true do count += 1 end -- HERE
end)
