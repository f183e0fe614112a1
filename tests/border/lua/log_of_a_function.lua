-- The line is logged, and says what is wrong with the field.
-- says: INFO x.*a\[[12]\]: a function cannot be stored as JSON
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.logger:info("x", { a = { 1, function() end }, b = 2 })
end)
