-- expect: larger than
-- limit: none
-- Objects of many fields for kopf.adopt and its like.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local object = { metadata = { labels = {} } }
    for i = 1, 200000 do object.metadata.labels["label" .. i] = "x" end
    kopf.label(object, { a = "b" })
end)
