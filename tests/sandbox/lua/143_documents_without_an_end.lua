-- expect: invalid YAML: 
-- limit: none
-- Many documents of nothing.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    yaml.decode_all(string.rep("---\n", 100000))
end)
