-- expect: used more than 0.2 s
-- limit: cpu
-- A long text that is spaces only, in a loop.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local spaces = string.rep(" ", 1000000)
    while true do strings.trim_end(spaces) end
end)
