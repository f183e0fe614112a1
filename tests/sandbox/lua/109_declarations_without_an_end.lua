-- expect: the script declares more than 1000 handlers
-- limit: none
-- at: load
-- Handlers without an end.
for i = 1, 1e9 do kopf.on_create('pods', { id = 'h' .. i }, function() end) end
