-- expect: computed for more than 0.2 s|E|endless
-- limit: none
-- at: load
-- Globals are looked through for the name of a function.
for i = 1, 100000 do _G["g" .. i] = print end
while true do pcall(kopf.on_create, "pods", function() end) end
