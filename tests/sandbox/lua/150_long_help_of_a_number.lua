-- expect: `help`: longer than 1000 bytes
-- limit: none
-- A megabyte of help for each number.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for i = 1, 100 do metrics.gauge("it" .. i, 1, { help = string.rep("x", 900000) }) end
end)
