-- expect: ok
-- limit: none
-- Neither functions nor values of others come out of debug.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for level = 0, 50 do
        local ok, f = pcall(debug.info, level, "f")
        if ok and f ~= nil then
            assert(not pcall(f, {}, {}) or true)
            local ok2, source = pcall(debug.info, f, "s")
        end
    end
    assert(not string.find(debug.traceback(), "/home"))
    assert(not string.find(debug.traceback(), "%.rs"))
    return "fine"
end)
