-- expect: invalid JSON: 
-- limit: none
-- Lists in lists.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    json.decode(string.rep("[", 100000))
end)
