-- says: the script declares more than 100 indexes
-- at: load
for i = 1, 101 do
    kopf.index("kopfexamples", { id = "i" .. i }, function() end) -- HERE
end
