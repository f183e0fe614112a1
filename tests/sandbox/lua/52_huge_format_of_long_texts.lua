-- expect: longer than 1 MiB
-- limit: string
-- Long texts put together by a template.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local s = string.rep("x", 500000)
    return #string.format("%s%s%s%s%s", s, s, s, s, s)
end)
