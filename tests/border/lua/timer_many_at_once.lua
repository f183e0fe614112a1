-- says: Timer 'hostile900' succeeded
-- holds: 16 MiB
for i = 1, 900 do
    kopf.timer("kopfexamples", { id = "hostile" .. i, interval = 5, labels = { role = "hostile" } }, function() end)
end
