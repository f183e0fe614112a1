-- says: the last argument must be the handler function, but it is not set
-- at: load
kopf.on_create("kopfexamples", undefined) -- HERE
