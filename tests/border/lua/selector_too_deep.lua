-- says: nested deeper than 128 levels
-- at: load
local deep = {}
for _ = 1, 130 do deep = { x = deep } end
kopf.on_create(deep, function() end) -- HERE
