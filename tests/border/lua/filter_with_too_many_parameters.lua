-- says: is skipped: its filter 'when' failed .*nil
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" }, when = function(a, b, c)
    error(tostring(c)) -- HERE
end }, function() end)
