local checks = require("lib.checks")
local check, fails = checks.check, checks.fails

local numbers = { 3, 1, 2 }
local function double(n)
    return n * 2
end
local function odd(n)
    return n % 2 == 1
end

check(lists.map(numbers, double), { 6, 2, 4 })
check(lists.map({}, double), kopf.array({}))
check(lists.map({ 1 }, function() end), { kopf.null })
check(lists.filter(numbers, odd), { 3, 1 })
check(lists.partition(numbers, odd), { { 3, 1 }, { 2 } })
check(lists.flat_map(numbers, function(n) return { n, n } end), { 3, 3, 1, 1, 2, 2 })
check(lists.find(numbers, odd), 3)
check(lists.find({}, odd), nil)
check(lists.any(numbers, odd), true)
check(lists.all(numbers, odd), false)
check(lists.count(numbers, odd), 2)
check(lists.reduce(numbers, 0, function(sum, n) return sum + n end), 6)
local people = { { n = "b", a = 2 }, { n = "a", a = 2 }, { n = "c", a = 1 } }
local function name(p) return p.n end
local function age(p) return p.a end
check(lists.map(lists.sort_by(people, age), name), { "c", "b", "a" })
check(lists.map(lists.sort_by(people, name), name), { "a", "b", "c" })
check(lists.sort_by({}, age), kopf.array({}))
check(lists.group_by(people, age)["2"], { people[1], people[2] })
check(lists.index_by(people, name).c, people[3])
check(lists.min_by(people, age).n, "c")
check(lists.max_by(people, age).n, "b")
check(lists.min_by({}, age), nil)

local many = lists.range(1, 1000)
check(lists.sort_by(many, function(n) return -n end)[1], 1000)
check(lists.sum(many), 500500)

check(lists.sort({ "b", "a" }), { "a", "b" })
check(lists.sort({ 3, 1.5, -2 }), { -2, 1.5, 3 })
check(lists.reverse(numbers), { 2, 1, 3 })
check(lists.unique({ 1, 2, 1, { a = 1 }, { a = 1 } }), { 1, 2, { a = 1 } })
check(lists.flatten({ 1, { 2, { 3 } } }), { 1, 2, { 3 } })
check(lists.flatten({ 1, { 2, { 3 } } }, 2), { 1, 2, 3 })
check(lists.zip({ 1, 2, 3 }, { "a", "b" }), { { 1, "a" }, { 2, "b" } })
check(lists.range(1, 3), { 1, 2, 3 })
check(lists.range(3, 1, -2), { 3, 1 })
check(lists.range(3, 1), kopf.array({}))
check(lists.contains({ { a = 1 } }, { a = 1 }), true)
check(lists.concat({ 1 }, { 2 }), { 1, 2 })
check(lists.chunks({ 1, 2, 3 }, 2), { { 1, 2 }, { 3 } })
check(lists.take(numbers, 2), { 3, 1 })
check(lists.drop(numbers, 2), { 2 })
check(lists.sum({ 1, 0.5 }), 1.5)
check(lists.difference({ 1, 2, 3 }, { 2 }), { 1, 3 })
check(numbers, { 3, 1, 2 })

fails(function() lists.map(numbers) end, "lists.map: `change` is missing: expected a function")
fails(function() lists.map(5, double) end, "lists.map: `list`: expected a list, got a number")
fails(function() lists.flat_map(numbers, double) end, "lists.flat_map: the function must return a list")
fails(function() lists.sort_by({ 1, "a" }, function(it) return it end) end, "lists.sort_by: the function must return numbers only, or strings only")
fails(function() lists.group_by(numbers, function() return {} end) end, "lists.group_by: the function must return a string, a number, true or false")
fails(function() lists.range(1, 1000000) end, "lists.range: the result would have more than 100000 items")
fails(function() lists.map(numbers, function() error("mine", 0) end) end, "mine")

-- `require` with the name of a library returns the library, and callbacks may wait.
check(require("lists") == lists, true)
check(require("kopf/json").encode({ 1 }), "[1]")
check(lists.map({ 1 }, function(n) kopf.sleep(1) return n end), { 1 })
