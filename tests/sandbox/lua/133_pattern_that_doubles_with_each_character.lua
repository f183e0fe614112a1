-- expect: used more than 0.2 s
-- limit: cpu
-- The automaton of this pattern has more states than there are atoms: each byte of the text makes a new one.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local parts, seed = {}, 1
    for i = 1, 20000 do seed = (seed * 16807) % 2147483647 parts[i] = if seed % 2 == 0 then "a" else "b" end
    local text = string.rep(table.concat(parts), 40)
    while true do re.test("(?-u)[ab]*a[ab]{60}c", text) end
end)
