-- The functions of `template`; `src/scripting/functions/template/mod.rs` documents them. Filters of the script may wait, so they are
-- called from here, never by the host: it renders until it needs the next result of one.
local host = ...
local template = {}
local error, tostring, unpack = error, tostring, table.unpack
local array, null = kopf.array, kopf.null

-- The level of the caller in the script, which errors refer to: skips the function of this file and the one that has checked the
-- arguments.
local CALLER = 3

local filters, names = {}, {}

function template.filter(name, f)
    if not filters[name] then
        local problem = host.filter(name, #names)
        if problem then
            error(problem, CALLER)
        end
        names[#names + 1] = name
    end
    filters[name] = f
end

function template.render(text, values, options)
    local results = {}
    while true do
        local problem, done = host.render(text, values, array(names), array(results), options)
        if problem then
            error(problem, CALLER)
        elseif done.text then
            return done.text
        end
        local result = filters[done.filter](unpack(done.arguments))
        if result == nil then
            result = null
        end
        results[#results + 1] = result
    end
end

return template
