-- expect: ok
-- limit: none
-- Times that are none, where one is expected.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "a" } }
    for _, it in { 1e300, -1, "1e300d", "999999999999999d", 1e19 } do
        local ok, told = pcall(kube.wait, pod, "deleted", it)
        assert(not ok and string.find(tostring(told), "timeout", 1, true), told)
        assert(not pcall(http.get, "http://a.example", { timeout = it }))
    end
end)
