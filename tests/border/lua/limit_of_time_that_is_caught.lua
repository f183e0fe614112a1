-- says: used more than 1 s
-- limit: cpu
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    while true do
        pcall(function()
            while true do end -- HERE
        end)
    end
end)
