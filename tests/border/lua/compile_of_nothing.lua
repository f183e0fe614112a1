-- says: Expected 'end'
-- at: load
kopf.on_create("kopfexamples", function(ctx)
