-- says: made 20 keys
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local made = 0
    for i = 1, 20 do
        crypto.key("p256")
        hash.bcrypt("x", { cost = 4 })
        made = made + 1
    end
    ctx.logger:info("made " .. made .. " keys")
end)
