-- expect: used more than 0.2 s
-- limit: cpu
-- Addresses of long names, taken apart and put together.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = "http://" .. string.rep("xn--a.", 30) .. "b/" .. string.rep("../", 5000) .. "?" .. string.rep("%41", 5000)
    while true do pcall(url.parse, text) url.encode(text) end
end)
