-- says: the script has [0-9.]+ .*more than 1 MiB
-- at: load
local text = "@@1048577:x@@"
