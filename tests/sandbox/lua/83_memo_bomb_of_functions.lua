-- expect: needs more than 16 MiB
-- limit: memory
-- A memo of many functions: they stay in the VM.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    for i = 1, 1e9 do ctx.memo['f' .. i] = function() return i end end
end)
