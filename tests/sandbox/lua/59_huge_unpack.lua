-- expect: too many results to unpack
-- limit: none
-- More results than there are places.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return select('#', unpack({}, 1, 100000000))
end)
