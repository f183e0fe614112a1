-- expect: used more than 0.2 s
-- limit: cpu
-- at: load
-- Declarations that are refused, again and again.
while true do pcall(kopf.on_create, "pods") end
