-- expect: ok
-- limit: none
-- Nothing leaves the process, and nothing of it is seen.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local ways = {
        function() return http.post("http://169.254.169.254/", { body = "x" }) end,
        function() return http.get("http://localhost:1/") end,
        function() return http.get("file:///etc/passwd") end,
        function() return http.request("CONNECT", "http://a.example") end,
        function() return files.read("/proc/self/environ") end,
        function() return files.read("/etc/../etc/passwd") end,
        function() return files.list("/") end,
        function() return files.exists("/var/run/secrets/kubernetes.io/serviceaccount/token") end,
        function() return env.get("HOME") end,
        function() return time.format(0, "%c", { zone = "../../etc/passwd" }) end,
    }
    for place, way in ways do assert(not pcall(way), place) end
    assert(next(env.all()) == nil)
end)
