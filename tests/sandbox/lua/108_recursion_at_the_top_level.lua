-- expect: nested deeper than 200 levels
-- limit: depth
-- at: load
-- The top level calls itself.
local function f() return 1 + f() end
f()
