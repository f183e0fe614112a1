-- It is called every 50 ms, and hurts nobody.
-- says: Timer 'hostile' succeeded
-- holds: 4 MiB
kopf.timer("kopfexamples", { id = "hostile", labels = { role = "hostile" }, interval = 0 }, function(ctx)
    return nil
end)
