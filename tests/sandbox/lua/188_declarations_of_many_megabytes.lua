-- expect: the options of all declarations are larger than 4 MiB as JSON
-- limit: none
-- at: load
local large = { text = string.rep("a", 500000) }
for i = 1, 100 do
    kopf.on_create("kopfexamples", { id = "handler" .. i, param = large }, function() end)
end
