-- expect: computed for more than|table overflow|too many elements to move|wrap around|needs more
-- limit: none
-- A move of a billion items that are not there.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    table.move({}, 1, 1000000000, 2)
end)
