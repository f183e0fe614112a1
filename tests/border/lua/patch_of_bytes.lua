-- says: patch.status.b: bytes cannot be stored as JSON: encode them with base64.encode
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.status.b = buffer.create(3) -- HERE
end)
