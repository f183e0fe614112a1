-- expect: ok
-- limit: none
-- Nothing tells of the process, its files or its environment.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local seen = {}
    local function walk(value, path)
        if type(value) == "string" then
            assert(not string.find(value, "PATH="), path)
            assert(not string.find(value, "/proc"), path)
        elseif type(value) == "table" and not seen[value] then
            seen[value] = true
            for k, v in value do walk(v, path .. "." .. tostring(k)) end
        end
    end
    walk(_G, "_G")
    walk(getmetatable(_G), "metatable")
    return "fine"
end)
