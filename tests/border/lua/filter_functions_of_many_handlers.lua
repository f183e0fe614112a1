-- says: the options of all declarations have more than 1000 functions in total
-- at: load
for i = 1, 100 do
    local labels = {}
    for k = 1, 30 do labels["label" .. k] = function(value) return i > 0 end end
    kopf.on_event("kopfexamples", { id = "e" .. i, labels = labels }, function() end) -- HERE
end
