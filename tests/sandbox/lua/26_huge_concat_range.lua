-- expect: invalid value \(nil\) at index 1 in table for 'concat'
-- limit: none
-- A concatenation of items that are not there.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return table.concat({}, 'x', 1, 1e9)
end)
