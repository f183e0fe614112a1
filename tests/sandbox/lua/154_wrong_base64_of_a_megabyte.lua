-- expect: invalid Base64
-- limit: none
-- Megabytes that are invalid Base64.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    base64.decode(string.rep("=", 900000))
end)
