-- says: the script declares more than 1000 handlers; distribute them over several scripts
-- at: load
local owned = {}
for i = 1, 1000 do owned[i] = "things" .. i end
kopf.reconcile("kopfexamples", { owns = owned }, function() return {} end) -- HERE
