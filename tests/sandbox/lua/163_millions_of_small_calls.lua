-- expect: used more than 0.2 s
-- limit: cpu
-- Each costs next to nothing.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    while true do uuid.v4() quantity.add("1Gi", "1m") semver.matches("1.2.3", "^1") deep.get({ a = 1 }, "a") time.now() end
end)
