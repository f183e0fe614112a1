-- says: kopf.on_create has no option `nothings`
-- at: load
kopf.on_create("kopfexamples", { nothings = 1 }, function() end) -- HERE
