-- Replaces built-ins that would compute long without a time check, or allocate too much at once. Runs once per VM, before all
-- other Lua code of the host; receives the host's functions.
local host = ...

local error, floor, max, min, next, select, tonumber, type =
    error, math.floor, math.max, math.min, next, select, tonumber, type
local rawget, rawlen = rawget, rawlen
local info = debug.info
-- Parts of objects are filled when a script reads them. Native functions that read tables raw do not fill them.
local fill = host.fill

-- Searches in strings: the cost of the built-in ones is the product of both lengths.
local find, rep, split, sub = string.find, string.rep, string.split, string.sub
local search = host.search
-- About a millisecond of a built-in search.
local SEARCH = 1e6

local function is_long(s, part)
    return type(s) == "string" and type(part) == "string" and #s * #part > SEARCH
end

function string.find(s, pattern, init, plain)
    if is_long(s, pattern) then
        local is_plain, first, last = search(s, pattern, init, plain)
        if is_plain then
            return first, last
        end
    end
    return find(s, pattern, init, plain)
end

function string.split(s, separator)
    if not is_long(s, separator) or #separator < 2 then
        return split(s, separator)
    end
    local parts, from = {}, 1
    while true do
        local _, first, last = search(s, separator, from, true)
        if not first then
            parts[#parts + 1] = sub(s, from)
            return parts
        end
        parts[#parts + 1] = sub(s, from, first - 1)
        from = last + 1
    end
end

-- Native functions accept strings as numbers.
local function number(value)
    return if type(value) == "string" then tonumber(value) or value else value
end

local string_size = host.string_size
function string.rep(s, n)
    n = number(n)
    if type(s) == "string" and type(n) == "number" and #s * n > string_size then
        error(host.too_long, 2)
    end
    return rep(s, n)
end

local create_buffer = buffer.create
function buffer.create(size)
    size = number(size)
    if type(size) == "number" and size > string_size then
        error(host.too_long, 2)
    end
    return create_buffer(size)
end

-- Long tables: they are moved in parts, and sorted with a comparison function that the interrupt can reach.
local move, sort = table.move, table.sort
local PART = 10000

function table.move(from, first, last, to, target)
    fill(from)
    first, last, to = number(first), number(last), number(to)
    local is_simple = type(first) ~= "number" or type(last) ~= "number" or type(to) ~= "number" or last - first < PART
    if is_simple then
        return move(from, first, last, to, target)
    end
    first, last, to = floor(first), floor(last), floor(to)
    target = if target == nil then from else target
    if to > last or to <= first or target ~= from then
        for place = first, last, PART do
            move(from, place, min(place + PART - 1, last), to + (place - first), target)
        end
    else
        for place = last, first, -PART do
            local low = max(first, place - PART + 1)
            move(from, low, place, to + (low - first), target)
        end
    end
    return target
end

-- Returns whether sorting these values in the default order is cheap. Native functions ignore metatables here.
local function sorts_quickly(t)
    local n = rawlen(t)
    if n > 10 * PART then
        return false
    end
    local texts = 0
    for i = 1, n do
        local value = rawget(t, i)
        if type(value) == "string" then
            texts = max(texts, #value)
        elseif type(value) ~= "number" then
            return false
        end
    end
    return n * texts < SEARCH
end

local function ascending(a, b)
    return a < b
end

function table.sort(t, before)
    if before == nil and type(t) == "table" and not sorts_quickly(t) then
        before = ascending
    elseif type(before) == "function" and info(before, "s") == "[C]" then
        local native = before
        before = function(a, b)
            return native(a, b)
        end
    end
    return sort(t, before)
end

function table.foreach(t, f)
    for key, value in next, t do
        local result = f(key, value)
        if result ~= nil then
            return result
        end
    end
end

function table.foreachi(t, f)
    for i = 1, #t do
        local result = f(i, t[i])
        if result ~= nil then
            return result
        end
    end
end

local getn, maxn = table.getn, table.maxn
function table.getn(t)
    return getn(fill(t))
end

function table.maxn(t)
    return maxn(fill(t))
end

local time = os.time
function os.time(t)
    return time(fill(t))
end

-- Each letter of a format is a call of the system's library, and no useful format has many.
local date = os.date
function os.date(format, time)
    if type(format) == "string" and #format > host.date_format then
        error(host.too_long_format, 2)
    end
    return date(format, time)
end

-- Scripts must not get functions from the stack: these include the built-in forms of the above.
function debug.info(...)
    for i = 1, select("#", ...) do
        local options = select(i, ...)
        if type(options) == "string" and find(options, "f", 1, true) then
            error("debug.info: the option \"f\" is not supported", 2)
        end
    end
    return info(...)
end

-- The number of coroutines that are neither dead nor collected.
local create, status = coroutine.create, coroutine.status
local coroutines_max = host.coroutines_max
local alive, count = setmetatable({}, { __mode = "k" }), 0

local function count_again()
    host.collect()
    count = 0
    for co in next, alive do
        if status(co) == "dead" then
            alive[co] = nil
        else
            count += 1
        end
    end
end

function coroutine.create(f)
    if count >= coroutines_max then
        count_again()
        if count >= coroutines_max then
            error(host.too_many, 2)
        end
    end
    local co = create(f)
    alive[co] = true
    count += 1
    return co
end

-- Called by the prelude when a coroutine has ended.
function host.ended(co)
    if alive[co] then
        alive[co] = nil
        count -= 1
    end
end
