-- expect: used more than 0.2 s
-- limit: cpu
-- Fields of half a megabyte: they are left out.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("x", 500000)
    while true do log.info("x", { a = text }) end
end)
