-- expect: ^E falseerror in error handling$
-- limit: none
-- Error handlers that fail in turn.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local function handler(e)
        error(e)
    end
    local ok, message = xpcall(function() error("x") end, handler)
    error("E " .. tostring(ok) .. tostring(message))
end)
