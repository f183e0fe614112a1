-- says: template.render: .*uppr.*did you mean `upper`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.render("{{ a | uppr }}", { a = "x" }) -- HERE
end)
