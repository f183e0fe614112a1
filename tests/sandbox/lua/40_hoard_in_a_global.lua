-- expect: needs more than 16 MiB of memory
-- limit: memory
-- What is kept beyond the call is gone with the VM.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    kept = {}
    while true do kept[#kept + 1] = { #kept } end
end)
