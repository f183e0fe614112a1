-- expect: invalid format
-- limit: none
-- A width of a hundred thousand.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return string.format("%99999d", 1)
end)
