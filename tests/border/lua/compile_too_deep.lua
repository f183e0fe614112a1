-- says: recursion depth|nested|complex
-- at: load
local x = @@2000:(@@1@@2000:)@@ -- HERE
