-- says: the filter combines more than 1000 functions
-- at: load
local f = function() return true end
for i = 1, 30 do
    f = kopf.all_(f, f) -- HERE
end
kopf.on_event("kopfexamples", { when = f }, function() end)
