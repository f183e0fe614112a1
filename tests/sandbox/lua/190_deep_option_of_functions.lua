-- expect: nested deeper than 128 levels
-- limit: none
-- at: load
local function nothing() end
local param = nothing
for i = 1, 100000 do param = { nothing, param } end
kopf.on_create("kopfexamples", { id = "deep", param = param }, nothing)
