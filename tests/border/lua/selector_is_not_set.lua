-- says: the last argument must be the handler function, and it is not set
-- at: load
kopf.on_create("kopfexamples", undefined) -- HERE
