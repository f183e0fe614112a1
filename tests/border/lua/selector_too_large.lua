-- says: longer than 4 MiB|4 MiB as JSON
-- at: load
local text = string.rep("x", 3000000)
kopf.on_create("kopfexamples", { param = { text, text } }, function() end) -- HERE
