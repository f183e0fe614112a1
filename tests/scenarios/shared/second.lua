-- The other script: it reads and changes what the first one remembers.

function second_create(ctx)
    ctx.logger:info("operator " .. ctx.memo.operator.by)
    ctx.logger:info("list " .. tostring(ctx.memo.list) .. " of " .. #ctx.memo.list)
    ctx.logger:info("map " .. tostring(ctx.memo.map) .. " " .. ctx.memo.map.text)
    table.insert(ctx.memo.list, "third")
    ctx.memo.list[1] = "changed"
    ctx.memo.map.added = true
    return ctx.memo.map
end

kopf.on_create("kopfexamples", second_create)
