-- expect: there is no filter
-- limit: none
-- A name of megabytes is compared with no other, and not told in full.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local ok, told = pcall(template.render, "{{ a | " .. string.rep("x", 900000) .. " }}", { a = 1 })
    if #tostring(told) > 20000 then error("a long message") end
    error(told, 0)
end)
