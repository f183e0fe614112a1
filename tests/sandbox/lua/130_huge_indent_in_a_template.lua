-- expect: a string would be longer than
-- limit: string
-- Two hundred spaces in front of each of many lines.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    template.render("{{ text | indent(200) }}", { text = string.rep("\n", 500000) })
end)
