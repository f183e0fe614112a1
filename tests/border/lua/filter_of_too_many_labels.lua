-- says: the options of all declarations have more than 50000 items in total: move data to variables
-- at: load
local absent = {}
for i = 1, 10001 do absent["label" .. i] = kopf.ABSENT end
for i = 1, 5 do
    kopf.on_event("kopfexamples", { id = "e" .. i, labels = absent }, function() end) -- HERE
end
