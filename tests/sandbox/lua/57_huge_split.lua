-- expect: needs more than 16 MiB
-- limit: memory
-- A part for each of the characters.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local n = 0
    while true do n += #string.split(string.rep("x", 1048576), "") end
end)
