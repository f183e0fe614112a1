-- The part of the host that is simpler in Lua. Runs once per VM, before the sandbox is closed. Receives the host's functions and
-- returns the method `wait` of `ctx.stopped`, and the wrappers that let functions wait and raise errors.
local host = ...
local null, fill = host.null, host.fill

local error, ipairs, pairs, pcall, select, tostring, type, xpcall =
    error, ipairs, pairs, pcall, select, tostring, type, xpcall
local concat, insert, pack, remove, unpack = table.concat, table.insert, table.pack, table.remove, table.unpack
local create, resume, status, yield =
    coroutine.create, coroutine.resume, coroutine.status, coroutine.yield
local format = string.format

local function is_view(t)
    return type(t) == "userdata" and t ~= null
end

-- Views are userdata, which the built-in iterators reject. These iterate over a copy of the keys.
function _G.pairs(t)
    if is_view(t) then
        return host.iterate(t)
    end
    return pairs(t)
end

local function next_item(t, i)
    local value = t[i + 1]
    if value ~= nil then
        return i + 1, value
    end
end

function _G.ipairs(t)
    if is_view(t) then
        return next_item, t, 0
    end
    return ipairs(t)
end

function table.insert(t, ...)
    if not is_view(t) then
        return insert(t, ...)
    end
    local place, value = ...
    if select("#", ...) == 1 then
        place, value = #t + 1, place
    end
    for i = #t, place, -1 do
        t[i + 1] = t[i]
    end
    t[place] = value
end

function table.remove(t, place)
    if not is_view(t) then
        return remove(fill(t), place)
    end
    place = place or #t
    local value = t[place]
    for i = place, #t do
        t[i] = t[i + 1]
    end
    return value
end

-- Functions that only read a list also accept a list of the host.
for _, name in { "concat", "find", "unpack" } do
    local native = table[name]
    table[name] = function(t, ...)
        if is_view(t) then
            t = host.plain(t)
        end
        return native(fill(t), ...)
    end
end
_G.unpack = table.unpack

function _G.print(...)
    local texts = pack(...)
    for i = 1, texts.n do
        texts[i] = tostring(texts[i])
    end
    local text = concat(texts, "\t")
    if not host.print(text) then
        -- The operator itself must not wait for a reader: the call moves to the thread of the script.
        yield(host.pending)
        host.print(text)
    end
end

-- `%s` accepts every value, as in newer versions of Lua: parts of objects are shown as JSON.
local function shown(...)
    local texts = pack(...)
    for i = 1, texts.n do
        local kind = type(texts[i])
        if kind ~= "string" and kind ~= "number" then
            texts[i] = tostring(texts[i])
        end
    end
    return unpack(texts, 1, texts.n)
end

function string.format(template, ...)
    for i = 1, select("#", ...) do
        local kind = type((select(i, ...)))
        if kind ~= "string" and kind ~= "number" then
            return format(template, shown(...))
        end
    end
    return format(template, ...)
end

-- A full memory ends the call, whoever catches the error. An error of the host becomes a string, like all others.
local exhausted, told = host.exhausted, host.told
local function caught_by_script(ok, first, ...)
    if not ok and (first == "not enough memory" or type(first) == "userdata") then
        exhausted(first)
        return ok, told(first), ...
    end
    return ok, first, ...
end

function _G.pcall(f, ...)
    return caught_by_script(pcall(f, ...))
end

function _G.xpcall(f, handler, ...)
    if type(handler) ~= "function" then
        return caught_by_script(xpcall(f, handler, ...))
    end
    local function handle(problem, ...)
        return handler(told(problem), ...)
    end
    return caught_by_script(xpcall(f, handle, ...))
end

-- A coroutine of the script that waits for the host must pass its wait on to the coroutine of the handler.
local pending, ended = host.pending, host.ended
local function pass_on(co, ok, first, ...)
    if ok and first == pending and status(co) == "suspended" then
        return pass_on(co, resume(co, yield(pending)))
    end
    if status(co) == "dead" then
        ended(co)
    end
    return caught_by_script(ok, first, ...)
end

function coroutine.resume(co, ...)
    return pass_on(co, resume(co, ...))
end

-- Returns the results of `pcall` or of a wait, or raises the error unchanged, with its original position.
local function settled(ok, ...)
    if ok then
        return ...
    end
    error((...), 0)
end

local close = coroutine.close
function coroutine.close(co)
    local ok, message = close(co)
    ended(co)
    return ok, message
end

function coroutine.wrap(f)
    local co = create(f)
    return function(...)
        return settled(pass_on(co, resume(co, ...)))
    end
end

-- Wraps a function that sets what to wait for: the wrapper waits by yielding `pending`, and returns the result.
local function pausing(begin)
    return function(...)
        begin(...)
        return settled(yield(pending))
    end
end

-- The same for `ctx.stopped:wait`. Thousands of daemons may wait, so the flag is dropped meanwhile.
local function pausing_on_flag(begin)
    return function(flag, timeout)
        begin(flag, timeout)
        flag = nil
        return settled(yield(pending))
    end
end

-- Raises an error at the line of the script that called the host: level 3 skips this function and its caller.
local function result_of(problem, result)
    if problem then
        error(problem, 3)
    end
    return result
end

-- Raises the error that `call` returns, or returns its result.
local function raising(call)
    return function(...)
        return result_of(call(...))
    end
end

-- Modules run once. In Lua, so that their top level may wait.
local modules, loading = {}, {}
function _G.require(name)
    local key, chunk = host.module(name, modules)
    local module = modules[key]
    if module ~= nil then
        return module
    end
    if loading[key] then
        error("module '" .. name .. "' requires itself", 2)
    end
    loading[key] = true
    local ok, result = pcall(chunk, name)
    loading[key] = nil
    if not ok then
        error(result, 0)
    end
    if result == nil then
        result = true
    end
    modules[key] = result
    return result
end

-- Creates `kopf.lock` from a function that waits for a lock and one that frees it. Errors of the locked function are raised unchanged.
local function locking(enter, free)
    local function finish(number, ok, ...)
        free(number)
        return settled(ok, ...)
    end
    return function(name, options, f)
        if f == nil and type(options) == "function" then
            options, f = nil, options
        end
        if type(f) ~= "function" then
            error("kopf.lock: the last argument must be a function", 2)
        end
        local number = enter(name, options)
        return finish(number, pcall(f))
    end
end

-- Implements `kopf.try`: the error comes second.
local function tried(ok, first)
    if ok then
        return first, nil
    end
    return nil, first
end

local function try(f, ...)
    return tried(_G.pcall(f, ...))
end

return pausing_on_flag(host.wait), pausing, raising, result_of, locking, try
