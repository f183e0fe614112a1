-- says: fake.http: fakes are only available in tests that `kopf test` runs
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    fake.http("*", function() return "pretended" end) -- HERE
end)
