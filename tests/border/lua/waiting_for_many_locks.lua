-- says: took 10000 one after another
-- says: this call holds 100 locks already|calls are nested deeper
-- says: the name is longer than 500 bytes
local function nested(n)
    return kopf.lock("nested " .. n, function() return nested(n + 1) end)
end

kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    local count = 0
    for n = 1, 10000 do
        count = count + kopf.lock("lock " .. n, function() return 1 end)
    end
    ctx.logger:info("took " .. count .. " one after another")
    local _, problem = kopf.try_call(nested, 1)
    ctx.logger:info(tostring(problem))
    kopf.lock(string.rep("x", 1048576), nested) -- HERE
end)
