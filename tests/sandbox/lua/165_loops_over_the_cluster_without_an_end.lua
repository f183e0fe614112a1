-- expect: 1000 loops and waits of this script are open
-- limit: none
-- Each would be a connection to the server.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local kept = {}
    for i = 1, 2000 do kept[i] = kube.watch("pods") end
end)
