-- expect: used more than 0.2 s
-- limit: cpu
-- Groups within a find of a megabyte are looked for in the slow way.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local parts, seed = {}, 1
    for i = 1, 20000 do seed = (seed * 16807) % 2147483647 parts[i] = if seed % 2 == 0 then "a" else "b" end
    local text = string.rep(table.concat(parts), 40)
    while true do re.captures("(?-u)((a|b|ab|ba)*)([ab]*)", text) end
end)
