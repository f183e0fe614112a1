-- expect: would have more than 100000 items
-- limit: none
-- A field for each two letters.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    url.parse_query(string.rep("a&", 300000))
end)
