-- says: requires itself|imports itself
-- at: load
require("a")
-- module: a.lua
return require("a") -- HERE
