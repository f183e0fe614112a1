-- Texts are formatted as the language does it.
-- says: INFO x y
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.logger:info("x %s", "y")
end)
