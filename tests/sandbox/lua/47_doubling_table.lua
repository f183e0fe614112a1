-- expect: needs more than 16 MiB of memory
-- limit: memory
-- A table that doubles.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = { 1 }
    while true do table.move(t, 1, #t, #t + 1) end
end)
