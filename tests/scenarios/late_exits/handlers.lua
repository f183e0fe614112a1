-- A daemon and a timer that take their time to stop, beside deletion handlers.

function busy(ctx)
    ctx.stopped:wait(1000)
    kopf.sleep(130)
    ctx.logger:info("the daemon has tidied up")
end

function expire(ctx)
    if ctx.spec.expired then
        kube.delete(ctx.body)
        kopf.sleep(7)
    end
end

function refund(ctx)
    ctx.logger:info("refunded")
    return { refunded = true }
end

function notify(ctx)
    if ctx.retry == 0 then
        kopf.retry("nobody answers", 20)
    end
    ctx.logger:info("notified")
end

kopf.daemon("kopfexamples", { labels = { role = "daemon" } }, busy)
kopf.timer("kopfexamples", { interval = 5, initial_delay = 1, labels = { role = "timer" } }, expire)
kopf.on_delete("kopfexamples", refund)
kopf.on_delete("kopfexamples", { labels = { role = "daemon" } }, notify)
