-- says: no luck
-- at: load
require("a")
-- module: a.lua
local x = 1
error("no luck") -- HERE
