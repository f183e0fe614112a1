-- expect: ok
-- limit: none
-- Each other way out.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _, name in { "..", ".", "", "a/../../b", "..%2f", "~/x", "C:\\x", "\0", "\\\\host\\x", "file:///etc/passwd", "./../x", "lib..x", string.rep("x/", 5000) } do
        local ok, message = pcall(require, name)
        assert(not ok, "a module was found: " .. name)
    end
    for _, name in { 1, {}, true, print } do
        assert(not pcall(require, name), "a module was found")
    end
    return "fine"
end)
