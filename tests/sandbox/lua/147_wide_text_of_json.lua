-- expect: would have more than 100000 items
-- limit: none
-- A short text, and a large tree.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    json.decode("[" .. string.rep("0,", 150000) .. "0]")
end)
