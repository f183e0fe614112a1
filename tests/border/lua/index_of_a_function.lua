-- says: the result.a.b: a function cannot be stored as JSON
-- says: trace: hostile.(lua|rhai):[0-9]+: the result
kopf.index("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    return { a = { b = function() end } }
end)
