-- What the tests of libraries claim. What is not so is told at the line of the test.
local checks = {}

-- Past the function of this file that the test has called.
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

-- It fails, and a part of what is told is this.
function checks.fails_with(f, part)
    local problem = problem_of(f)
    if not strings.contains(problem, part) then
        compare(problem, part)
    end
end

return checks
