-- expect: semver.parse: `version`: 
-- limit: none
-- The message has no megabytes.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local ok, told = pcall(semver.parse, string.rep("1", 900000))
    assert(not ok)
    if #tostring(told) > 20000 then error("a long message") end
    error(told, 0)
end)
