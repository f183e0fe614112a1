-- expect: .
-- limit: memory
-- A concatenation of items that are not there.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return table.concat({}, 'x', 1, 1e9)
end)
