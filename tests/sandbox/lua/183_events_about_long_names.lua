-- expect: a name of the object has more than 320 bytes
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local name = string.rep("a", 100000)
    kopf.info({ apiVersion = "v1", kind = "Pod", metadata = { name = name } }, "Reason", "message")
end)
