-- says: patch.status.b: bytes cannot be kept as JSON: make a string of them with base64.encode
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.status.b = buffer.create(3) -- HERE
end)
