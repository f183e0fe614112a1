-- expect: events about more than 1000 objects
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local objects = {}
    for i = 1, 5000 do
        objects[i] = { apiVersion = "v1", kind = "Pod", metadata = { name = "pod-" .. i } }
    end
    kopf.info(objects, "Reason", "message")
end)
