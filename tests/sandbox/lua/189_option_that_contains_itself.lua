-- expect: a table that contains itself
-- limit: none
-- at: load
local param = {}
param.param = param
kopf.on_create("kopfexamples", { id = "cyclic", param = param }, function() end)
