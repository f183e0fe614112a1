local M = {}

function M.greeting(name)
    return "hello, " .. name
end

return M
