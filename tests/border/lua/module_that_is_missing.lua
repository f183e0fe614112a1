-- says: abc
-- at: load
require("abc") -- HERE
