-- expect: used more than 0.2 s
-- limit: cpu
-- at: load
-- The top level never ends.
while true do end
