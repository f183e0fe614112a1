-- expect: ok
-- limit: none
-- Moments that are none are told, whatever they look like.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _, it in { -1e300, 1e300, 9007199254740993, 0 / 0, 1 / 0 } do
        assert(not pcall(time.format, it), it)
    end
    for _, it in { string.rep("9", 900000), "9999-99-99T99:99:99Z", "", "-", string.rep("-", 900000), "\0" } do
        local ok, told = pcall(time.parse, it)
        assert(not ok and #tostring(told) < 20000)
    end
    for _, it in { string.rep("1h", 200000) .. "x", "1e309s", string.rep(".", 900000) .. "s" } do
        assert(not pcall(time.duration, it))
    end
end)
