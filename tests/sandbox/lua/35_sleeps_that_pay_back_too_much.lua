-- expect: used more than
-- limit: cpu
-- Short sleeps between long computations: they pay back only what they last.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _ = 1, 1000 do
        for i = 1, 30000000 do end
        kopf.sleep(0.0001)
    end
end)
