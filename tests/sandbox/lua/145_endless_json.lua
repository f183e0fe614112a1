-- expect: used more than 0.2 s
-- limit: cpu
-- A long text, read and written in a loop.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = "[" .. string.rep("{\"a\":[1,null,\"x\"]},", 3000) .. "0]"
    while true do json.encode(json.decode(text)) end
end)
