-- expect: larger than 64 KiB as JSON
-- limit: result
-- What is assigned is copied with all that is behind the handles in it.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    ctx.patch.status.a = { text = string.rep("a", 1000) }
    for i = 1, 40 do
        ctx.patch.status.a = { ctx.patch.status.a, ctx.patch.status.a }
    end
end)
