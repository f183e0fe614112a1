-- Timers at the times of cron expressions, without finalizers.

kopf.timer("kopfexamples", { id = "fixed", schedule = "5,10 1 * * *", timezone = "+01:00", finalizer = false }, function(ctx)
    ctx.logger:info("fixed")
end)

kopf.timer("kopfexamples", {
    id = "own",
    backoff = 30,
    finalizer = false,
    schedule = function(ctx)
        return kopf.get(ctx.spec, "schedule")
    end,
}, function(ctx)
    ctx.logger:info("own: " .. ctx.spec.schedule)
end)

kopf.daemon("kopfexamples", { id = "daemon", finalizer = false }, function(ctx)
    ctx.logger:info("runs")
    ctx.stopped:wait("1d")
    ctx.logger:info("ends")
end)
