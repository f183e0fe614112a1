-- All the forms of the reference.
-- says: Handler 'hostile' succeeded
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    kopf.exception(ctx.body, "message", "error", { reason = "Odd" })
    kopf.exception(ctx.body, "message", nil, { reason = "Odd" })
    kopf.exception(ctx.body, "message", { message = "a", class = "B" })
    kopf.exception(ctx.body, { reason = "Odd", exc = "error" })
end)
