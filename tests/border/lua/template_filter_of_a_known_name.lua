-- says: template.filter: `name`: there is already a filter `upper`
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    template.filter("upper", function(x) return x end) -- HERE
end)
