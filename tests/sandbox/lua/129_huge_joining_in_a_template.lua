-- expect: a string would be longer than
-- limit: string
-- A list of nothing, with half a megabyte between.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local list = {}
    for i = 1, 20000 do list[i] = "" end
    template.render("{{ list | join(\"" .. string.rep("x", 500000) .. "\") }}", { list = list })
end)
