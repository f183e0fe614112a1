-- expect: longer than 1 MiB
-- limit: string
-- A text that doubles.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = "x"
    while true do s = s .. s end
end)
