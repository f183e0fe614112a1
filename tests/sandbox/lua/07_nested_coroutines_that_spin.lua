-- expect: used more than 0.2 s
-- limit: cpu
-- Coroutines in coroutines, each catching what stops the inner one.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function nest(level)
        while true do
            if level > 0 then
                coroutine.resume(coroutine.create(nest), level - 1)
            end
        end
    end
    nest(50)
end)
