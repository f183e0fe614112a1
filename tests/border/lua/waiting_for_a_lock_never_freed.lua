-- says: the lock 'x' is still held by Daemon 'holder' of default/bad after 1 s
kopf.daemon("kopfexamples", { id = "holder", labels = { role = "hostile" } }, function()
    kopf.lock("x", function()
        while true do
            kopf.sleep(1)
        end
    end)
end)

kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function()
    kopf.sleep(0.1)
    kopf.lock("x", { timeout = 1 }, function() end) -- HERE
end)
