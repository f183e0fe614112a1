-- expect: larger than
-- limit: none
-- Objects of many fields for kopf.adopt and its like.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local object = { metadata = { labels = {} } }
    local text = string.rep("x", 60)
    for i = 1, 20000 do object.metadata.labels["label" .. i] = text end
    kopf.label(object, { a = "b" })
end)
