-- says: the source has more than 200000 tokens
-- at: load
require("big") -- HERE
-- module: big.lua
@@41000:x = 1 + 1 @@
