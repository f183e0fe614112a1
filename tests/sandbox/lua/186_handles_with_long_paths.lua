-- expect: the levels of ctx.memo and ctx.patch that the script keeps have paths of more than 128 MiB
-- limit: none
-- A handle is small for the VM; its path is memory of the host.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local kept, key = {}, string.rep("a", 1000000)
    for i = 1, 400 do kept[i] = ctx.patch[key .. i] end
end)
