-- expect: used more than 0.2 s
-- limit: cpu
-- Where the next tag begins is looked for from each.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("{{a}}", 30000)
    while true do template.render(text, { a = "" }) end
end)
