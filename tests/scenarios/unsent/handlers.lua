-- Changes of daemons that do not end.

function steps(ctx)
    local steps = 0
    while not ctx.stopped:wait(25) do
        steps = steps + 1
        ctx.patch.status.steps = steps
    end
end
function sleeps(ctx)
    ctx.patch.status.sleeps = "once"
    kopf.sleep("150s")
    kopf.sleep("1s")
end
function soon(ctx)
    ctx.patch.status.soon = "sent"
    ctx.stopped:wait(50)
end
function nothing(ctx)
    ctx.stopped:wait()
    kopf.sleep("1s")
end
function timed(ctx)
    ctx.patch.status.timed = "timer"
    kopf.sleep("70s")
end

kopf.daemon("kopfexamples", { cancellation_timeout = 5 }, steps)
kopf.daemon("kopfexamples", { cancellation_timeout = 5 }, sleeps)
kopf.daemon("kopfexamples", { cancellation_timeout = 5 }, soon)
kopf.daemon("kopfexamples", { cancellation_backoff = 5 }, nothing)
kopf.timer("kopfexamples", { interval = 1000, initial_delay = 1 }, timed)
