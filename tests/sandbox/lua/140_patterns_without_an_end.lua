-- expect: used more than 0.2 s
-- limit: cpu
-- Each is compiled, and few are kept.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local i = 0
    while true do i += 1 re.test("[a-z]{9}" .. i, "x") end
end)
