-- expect: relative to the script's directory|refused
-- limit: none
-- Modules by absolute path.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    require("/etc/passwd")
end)
