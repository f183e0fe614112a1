-- What makes the functions of libraries out of those of the host. Runs when a script uses its first library.
local result_of = ...

-- Checks the arguments of a function that is written in Lua. Views of the host become tables for it.
local function checking(check, plain, body)
    return function(...)
        if result_of(check(...)) then
            return body(...)
        end
        return body(plain(...))
    end
end

-- What a loop calls: it waits for each value.
local function looping(open, next)
    return function(...)
        local stream = result_of(open(...))
        return function()
            return result_of(next(stream))
        end
    end
end

return looping, checking
