-- says: the script declares more than 100 timers
-- at: load
for i = 1, 101 do
    kopf.timer("kopfexamples", { id = "t" .. i, interval = 1 }, function() end) -- HERE
end
