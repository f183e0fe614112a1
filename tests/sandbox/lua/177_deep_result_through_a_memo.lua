-- expect: the result(\.x)+…: nested deeper than 128 levels
-- limit: none
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function wrap(value)
        for level = 1, 100 do value = { x = value } end
        return value
    end
    ctx.memo.a = wrap(1)
    return wrap(ctx.memo.a)
end)
