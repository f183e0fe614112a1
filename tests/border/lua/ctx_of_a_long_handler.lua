-- says: the id 'x{60}…' is longer than 512 bytes: 513
-- at: load
kopf.on_create("kopfexamples", { id = string.rep("x", 513) }, function() end) -- HERE
