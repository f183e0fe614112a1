-- expect: used more than 0.2 s
-- limit: cpu
-- A native called for each item by a native.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local t = table.create(500000, 1)
    while true do
        if table.foreachi then table.foreachi(t, rawequal) else for i in t do end end
    end
end)
