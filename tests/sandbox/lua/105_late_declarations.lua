-- expect: was called after the script was loaded
-- limit: none
-- Handlers declared while one runs.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    kopf.on_create("pods", function() end)
end)
