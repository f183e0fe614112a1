-- expect: more than 1000 tokens in one tag
-- limit: none
-- A value that goes through many filters.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    template.render("{{ a" .. string.rep("|upper", 100000) .. " }}", { a = "x" })
end)
