-- expect: needs more than 16 MiB of memory
-- limit: memory
-- at: load
-- The top level fills the memory.
local t = {}
for i = 1, 1e9 do t[i] = { i } end
