-- says: option `interval` must be seconds, or a duration such as .*, and not negative
-- at: load
kopf.timer("kopfexamples", { interval = -1 }, function() end) -- HERE
