-- says: http.get: the connection to 127.0.0.1:6443 is not granted to this script; --allow-net=127.0.0.1:6443 would allow it
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    http.get("https://127.0.0.1:6443/", { insecure = true }) -- HERE
end)
