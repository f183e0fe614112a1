-- says: kopf.on_create has no option `retrise`.*did you mean `retries`
-- at: load
kopf.on_create("kopfexamples", { retrise = 1 }, function() end) -- HERE
