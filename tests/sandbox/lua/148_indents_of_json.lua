-- expect: a string would be longer than
-- limit: string
-- Each item of a deep list has two hundred spaces in front of it.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = {}
    for i = 1, 20000 do list[i] = 1 end
    for i = 1, 110 do list = { list } end
    json.encode(list, { pretty = true })
end)
