-- expect: relative to the script's directory
-- limit: none
-- Modules by absolute path.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    require("/etc/passwd")
end)
