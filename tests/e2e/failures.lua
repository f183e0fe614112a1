-- Fails for good until the object has a label, and every second in a timer for objects of a crowd.
kopf.on_create("kopfexamples", { id = "made", labels = { crowd = kopf.ABSENT } }, function(ctx)
    if ctx.labels.fixed then return end
    kopf.fail("not fixed")
end)

kopf.timer("kopfexamples", { id = "tick", interval = 1, backoff = 1, labels = { crowd = "yes" } }, function()
    kopf.retry("not in a crowd", 1)
end)
