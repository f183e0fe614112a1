local names = require("_names")
local M = { UNIT = "Gi" }

function M.double(size)
    return size * 2
end

function M.refuse(size)
    kopf.fail(names.greeting("size " .. size))
end

function M.wrong()
    error("wrong in a module")
end

return M
