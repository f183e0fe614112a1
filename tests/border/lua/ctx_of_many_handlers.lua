-- says: Handler 'hostile900' succeeded
-- holds: 8 MiB
for i = 1, 900 do
    kopf.on_event("kopfexamples", { id = "hostile" .. i, labels = { role = "hostile" } }, function(ctx)
        ctx.patch.status["field" .. i] = i
    end)
end
