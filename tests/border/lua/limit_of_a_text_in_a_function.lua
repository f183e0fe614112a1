-- says: a string would be longer than 4 MiB \(settings.sandbox.string_size\)
local function padded(text)
    return string.rep(text, 5000000) -- HERE
end
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return padded("x")
end)
