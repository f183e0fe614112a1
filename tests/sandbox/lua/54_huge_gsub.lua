-- expect: longer than 1 MiB
-- limit: string
-- Each character is replaced by a long text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = string.rep("x", 1500)
    return #string.gsub(s, "x", s)
end)
