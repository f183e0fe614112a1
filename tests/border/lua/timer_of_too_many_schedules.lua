-- says: the script declares more than 100 schedules
-- at: load
for i = 1, 101 do
    kopf.every("1s", { id = "s" .. i }, function() end) -- HERE
end
