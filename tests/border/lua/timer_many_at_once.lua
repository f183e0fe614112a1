-- says: Timer 'hostile100' succeeded
-- holds: 16 MiB
for i = 1, 100 do
    kopf.timer("kopfexamples", { id = "hostile" .. i, interval = 0.5, labels = { role = "hostile" } }, function() end)
end
