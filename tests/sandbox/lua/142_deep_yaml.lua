-- expect: invalid YAML: 
-- limit: none
-- Lists in lists.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    yaml.decode(string.rep("[", 50000))
end)
