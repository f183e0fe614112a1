-- expect: used more than 0.2 s
-- limit: cpu
-- A long text, read in a loop.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("- {a: [1, b, \"c\"]}\n", 3000)
    while true do yaml.decode(text) end
end)
