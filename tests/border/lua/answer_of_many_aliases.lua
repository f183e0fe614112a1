-- says: yaml.decode: .*100000 items
-- holds: 8 MiB
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local text = "a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n"
    for i = 1, 6 do
        text ..= string.format("a%d: &a%d [%s]\n", i, i, string.rep("*a" .. (i - 1) .. " , ", 10))
    end
    yaml.decode(text) -- HERE
end)
