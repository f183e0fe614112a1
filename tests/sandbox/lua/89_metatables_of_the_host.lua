-- expect: ok
-- limit: none
-- Metatables of parts of objects and of the host's objects are shut.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _, value in { ctx, ctx.spec, ctx.patch, ctx.memo, ctx.logger, kopf.PRESENT, kopf.null, kopf.TemporaryError("x") } do
        local meta = getmetatable(value)
        assert(type(meta) ~= "table", "a metatable of the host is in reach")
        assert(not pcall(setmetatable, value, {}), "a metatable can be replaced")
    end
    assert(not pcall(rawset, ctx.spec, "x", 1), "a part can be written by rawset")
    assert(not pcall(table.clear, ctx.spec), "a part can be cleared")
    assert(table.isfrozen(ctx.spec))
    return "fine"
end)
