-- expect: `reason` has 4000 bytes: the API server accepts at most 128
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local objects = {}
    for i = 1, 900 do
        objects[i] = { apiVersion = "v1", kind = "Pod", metadata = { name = "pod-" .. i } }
    end
    kopf.info(objects, string.rep("a", 4000), "message")
end)
