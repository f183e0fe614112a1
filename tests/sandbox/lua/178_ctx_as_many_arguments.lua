-- expect: too many arguments, 5000
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local all = table.create(5000, ctx)
    return json.encode(table.unpack(all))
end)
