-- Runs each second, whatever the number of processes.
kopf.every(1, { id = "tick", sharp = true }, function(ctx)
    ctx.logger:info("ticks " .. ctx.scheduled)
end)
