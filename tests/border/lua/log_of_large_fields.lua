-- The line is logged without them.
-- says: INFO x.*fields_left_out.*more than 16 KiB as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = string.rep("x", 2000000)
    ctx.logger:info("x", { a = { b = text } })
end)
