-- Assertions for the tests of libraries. A failed assertion is reported at the line of the test.
local checks = {}

-- The level of the test: skips the function of this file that the test has called.
local TEST = 3

local function compare(actual, expected)
    if not deep.equal(actual, expected) then
        error("expected " .. json.encode(expected) .. ", got " .. json.encode(actual), TEST)
    end
end

local function problem_of(f)
    local ok, problem = pcall(f)
    return if ok then "no problem" else (string.gsub(tostring(problem), "^[%w_./]+:%d+: ", ""))
end

function checks.check(actual, expected)
    compare(actual, expected)
end

function checks.fails(f, told)
    compare(problem_of(f), told)
end

-- Asserts that the function fails with a message that contains this part.
function checks.fails_with(f, part)
    local problem = problem_of(f)
    if not strings.contains(problem, part) then
        compare(problem, part)
    end
end

return checks
