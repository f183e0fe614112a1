-- says: the script declares more than 100 probes
-- at: load
for i = 1, 101 do
    kopf.on_probe({ id = "p" .. i }, function() return i end) -- HERE
end
