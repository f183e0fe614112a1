-- expect: .
-- limit: memory
-- at: load
-- Declarations that are refused, again and again.
while true do pcall(kopf.on_create, "pods") end
