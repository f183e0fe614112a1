-- says: the script declares more than 1000 handlers; distribute them over several scripts
-- at: load
for i = 1, 1001 do
    kopf.on_event("kopfexamples", { id = "e" .. i }, function() end) -- HERE
end
