-- expect: read-only
-- limit: none
-- Each library, each global table, the metatable of texts.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _, lib in { string, table, math, coroutine, os, debug, utf8, bit32, buffer, kopf, kopf.on, kopf.lifecycles, kopf.ErrorsMode } do
        assert(not pcall(function() lib.evil = 1 end), "a library can be changed")
        assert(not pcall(rawset, lib, "evil", 1), "a library can be changed by rawset")
        assert(not pcall(setmetatable, lib, {}), "a library takes a metatable")
        local name, value = next(lib)
        assert(not pcall(function() lib[name] = print end), "a function can be replaced")
        assert(not pcall(table.clear, lib), "a library can be cleared")
    end
    getmetatable("").__index = {}
end)
