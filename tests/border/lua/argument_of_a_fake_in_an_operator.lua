-- says: fake.http: only the tests of `kopf test` have fakes
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    fake.http("*", function() return "pretended" end) -- HERE
end)
