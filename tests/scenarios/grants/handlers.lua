-- What the operator may see of its machine.

local DIR = "tests/scenarios/grants/config/"
-- Also at the top level.
local greeting = files.read(DIR .. "greeting.txt")

function variables(ctx)
    return {
        mode = env.get("APP_MODE"),
        empty = env.get("APP_EMPTY", "default"),
        absent = env.get("APP_ABSENT") == nil,
        default = env.get("APP_ABSENT", "default"),
        ungranted = env.get("SECRET", "default") .. env.get("SECRET", "default"),
        all = env.all(),
    }
end

function read(ctx)
    local app = files.read_json(DIR .. "app.json")
    app.replicas += 1
    return {
        greeting = greeting,
        json = app,
        yaml = files.read_yaml(DIR .. "app.yaml"),
        names = files.list(DIR),
        exists = { files.exists(DIR .. "app.json"), files.exists(DIR .. "nothing") },
    }
end

local function refusal(f)
    local ok, problem = pcall(f)
    return tostring(problem)
end

function refusals(ctx)
    local told = {
        refusal(function() env.get("SECRET") end),
        refusal(function() env.get() end),
        refusal(function() env.all(1) end),
        refusal(function() files.read("/etc/passwd") end),
        refusal(function() files.read("/etc/../etc/nothing") end),
        refusal(function() files.list("/") end),
        refusal(function() files.exists("/root/.ssh") end),
        refusal(function() files.read(DIR) end),
        refusal(function() files.read(DIR .. "nothing") end),
        refusal(function() files.read_json(DIR .. "greeting.txt") end),
        refusal(function() files.read(7) end),
    }
    for _, problem in told do
        -- Lua says where.
        ctx.logger:info((string.gsub(problem, "^handlers.lua:%d+: ", "")))
    end
    files.read("/etc/passwd")
end

-- The names of the libraries are free for others.
function shadowed(ctx)
    local env = { get = "mine" }
    return env.get
end

kopf.on_create("kopfexamples", variables)
kopf.on_create("kopfexamples", read)
kopf.on_create("kopfexamples", { errors = "permanent" }, refusals)
kopf.on_create("kopfexamples", shadowed)
