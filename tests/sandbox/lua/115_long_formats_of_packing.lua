-- expect: used more than 0.2 s
-- limit: cpu
-- Formats of a megabyte, again and again.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local format = string.rep("b", 1000000)
    while true do string.packsize(format) pcall(string.pack, format) pcall(string.unpack, format, format) end
end)
