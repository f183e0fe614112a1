-- says: selector|resource
-- at: load
kopf.on_create(5, function() end) -- HERE
