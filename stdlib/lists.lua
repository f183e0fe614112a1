-- The functions of `lists` that take callbacks; `src/scripting/functions/lists.rs` documents them. The host has already checked the
-- arguments. Callbacks may wait, so they are called from here, never by the host.
local lists = {}
local error, type, tostring = error, type, tostring
local array = kopf.array

-- The level of the caller in the script, which errors refer to: skips the function of this file and the one that has checked the
-- arguments.
local CALLER = 3

function lists.map(list, f)
    local mapped = {}
    for i, item in list do
        local value = f(item)
        if value == nil then
            value = kopf.null
        end
        mapped[i] = value
    end
    return array(mapped)
end

function lists.filter(list, f)
    local kept = {}
    for _, item in list do
        if f(item) then
            kept[#kept + 1] = item
        end
    end
    return array(kept)
end

function lists.partition(list, f)
    local yes, no = {}, {}
    for _, item in list do
        local side = f(item) and yes or no
        side[#side + 1] = item
    end
    return array({ array(yes), array(no) })
end

function lists.flat_map(list, f)
    local flat = {}
    for _, item in list do
        local items = f(item)
        if type(items) ~= "table" then
            error("lists.flat_map: the function must return a list", CALLER)
        end
        for _, value in items do
            flat[#flat + 1] = value
        end
    end
    return array(flat)
end

function lists.find(list, f)
    for _, item in list do
        if f(item) then
            return item
        end
    end
    return nil
end

function lists.any(list, f)
    for _, item in list do
        if f(item) then
            return true
        end
    end
    return false
end

function lists.all(list, f)
    for _, item in list do
        if not f(item) then
            return false
        end
    end
    return true
end

function lists.count(list, f)
    local count = 0
    for _, item in list do
        if f(item) then
            count += 1
        end
    end
    return count
end

function lists.reduce(list, initial, f)
    local value = initial
    for _, item in list do
        value = f(value, item)
    end
    return value
end

-- Returns the key of an item as a string: JSON maps have no other keys.
local function key_of(name, f, item)
    local key = f(item)
    if type(key) == "string" then
        return key
    end
    if type(key) == "number" or type(key) == "boolean" then
        return tostring(key)
    end
    error("lists." .. name .. ": the function must return a string, a number, true or false", CALLER + 1)
end

function lists.group_by(list, f)
    local groups = {}
    for _, item in list do
        local key = key_of("group_by", f, item)
        local group = groups[key]
        if not group then
            group = array()
            groups[key] = group
        end
        group[#group + 1] = item
    end
    return groups
end

function lists.index_by(list, f)
    local index = {}
    for _, item in list do
        index[key_of("index_by", f, item)] = item
    end
    return index
end

-- Returns whether one key sorts before another. All keys are numbers, or all are strings.
local function goes_before(name, a, b)
    local kind = type(a)
    if kind ~= type(b) or (kind ~= "number" and kind ~= "string") then
        error("lists." .. name .. ": the function must return numbers only, or strings only", CALLER + 1)
    end
    return a < b
end

-- Merge sort: stable, and each key is computed once.
function lists.sort_by(list, f)
    local items, keys, count = {}, {}, 0
    for i, item in list do
        items[i], keys[i], count = item, f(item), i
        goes_before("sort_by", keys[i], keys[1])
    end
    local width = 1
    while width < count do
        local merged, merged_keys = {}, {}
        for low = 1, count, 2 * width do
            local a, b = low, low + width
            local a_end, b_end = math.min(b, count + 1), math.min(b + width, count + 1)
            for place = low, b_end - 1 do
                if a < a_end and (b >= b_end or not (keys[b] < keys[a])) then
                    merged[place], merged_keys[place] = items[a], keys[a]
                    a += 1
                else
                    merged[place], merged_keys[place] = items[b], keys[b]
                    b += 1
                end
            end
        end
        items, keys = merged, merged_keys
        width *= 2
    end
    return array(items)
end

function lists.min_by(list, f)
    local best, best_key
    for i, item in list do
        local key = f(item)
        if goes_before("min_by", key, i == 1 and key or best_key) or i == 1 then
            best, best_key = item, key
        end
    end
    return best
end

function lists.max_by(list, f)
    local best, best_key
    for i, item in list do
        local key = f(item)
        if goes_before("max_by", i == 1 and key or best_key, key) or i == 1 then
            best, best_key = item, key
        end
    end
    return best
end

return lists
