-- Wraps functions of the host into functions of libraries. Runs when a script uses its first library.
local result_of = ...

-- Wraps a function that is written in Lua: checks its arguments, and converts views of the host to tables.
local function checking(check, plain, body)
    return function(...)
        if result_of(check(...)) then
            return body(...)
        end
        return body(plain(...))
    end
end

-- Returns a function that opens a stream and returns its iterator, which waits for each value.
local function looping(open, next)
    return function(...)
        local stream = result_of(open(...))
        return function()
            return result_of(next(stream))
        end
    end
end

return looping, checking
