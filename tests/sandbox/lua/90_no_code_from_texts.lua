-- expect: ok
-- limit: none
-- Nothing turns a text, or bytecode, into code.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for _, name in { "load", "loadstring", "loadfile", "dofile", "getfenv", "setfenv", "newproxy", "gcinfo", "collectgarbage", "package", "io", "module" } do
        assert(_G[name] == nil, name .. " is there")
    end
    assert(string.dump == nil)
    for _, name in { "execute", "getenv", "exit", "remove", "rename", "tmpname", "setlocale" } do
        assert(os[name] == nil, "os." .. name .. " is there")
    end
    for name in debug do
        assert(name == "traceback" or name == "info", "debug." .. name .. " is there")
    end
    return "fine"
end)
