-- says: used more than 1 s of CPU time and was aborted \(settings.execution.cpu_limit\)
-- limit: cpu
-- says: stack traceback:.*function spin.*hostile.lua:9
local function spin(step)
    local count = 0
    while count >= 0 do count += step end -- HERE
end
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    spin(0)
end)
