-- Creates a separate database for each claim, with a Job, and a Secret with the credentials.
--
-- The administrator's password never leaves the namespace HOME: the Jobs run there. Their SQL can be run again at any time.

local HOME = "databases" -- contains the Secret `postgres-admin`: PGHOST, PGUSER, PGPASSWORD
local IMAGE = "postgres:17-alpine"
local CLAIM = "databases.example.com/claim" -- the label of objects that belong to a claim

local PSQL = [[psql -v ON_ERROR_STOP=1 -v db="$DB_NAME" -v role="$DB_USER" -v password="$DB_PASSWORD" <<'SQL']]
local SQL = {
    create = [[
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :'role', :'password')
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec
SELECT format('CREATE DATABASE %I OWNER %I', :'db', :'role')
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'db') \gexec
]],
    drop = [[
SELECT format('DROP DATABASE IF EXISTS %I WITH (FORCE)', :'db') \gexec
SELECT format('DROP ROLE IF EXISTS %I', :'role') \gexec
]],
}

-- Returns the reference of an object of the claim in HOME.
local function at_home(ctx, apiVersion, kind, name, content)
    content.apiVersion, content.kind = apiVersion, kind
    content.metadata = { name = name, namespace = HOME, labels = { [CLAIM] = ctx.uid } }
    return content
end

-- Returns a readable and unique name.
local function database_of(ctx)
    return ctx.name:gsub("%W", "_"):sub(1, 40) .. "_" .. ctx.uid:sub(1, 8)
end

-- Returns the credentials; they are created once, before anything else, and then never changed.
local function login_of(ctx)
    local login = at_home(ctx, "v1", "Secret", "login-" .. ctx.uid, {})
    local present = kube.get(login)
    if present then
        return present
    end
    local name = database_of(ctx)
    login.stringData = { DB_NAME = name, DB_USER = name, DB_PASSWORD = random.string(32) }
    return kube.create(login)
end

local function job_of(ctx, purpose)
    return at_home(ctx, "batch/v1", "Job", `{purpose}-{ctx.uid}`, {
        spec = {
            backoffLimit = 3,
            template = {
                spec = {
                    restartPolicy = "Never",
                    containers = {
                        {
                            name = "psql",
                            image = IMAGE,
                            command = { "sh", "-c", `{PSQL}\n{SQL[purpose]}SQL\n` },
                            envFrom = {
                                { secretRef = { name = "postgres-admin" } },
                                { secretRef = { name = "login-" .. ctx.uid } },
                            },
                        },
                    },
                },
            },
        },
    })
end

-- Returns "Complete" or "Failed" and a message; nil while the Job runs.
local function outcome(job)
    for _, it in (job.status or {}).conditions or {} do
        if it.status == "True" and (it.type == "Complete" or it.type == "Failed") then
            return it.type, it.message
        end
    end
    return nil
end

-- Returns only when the Job has finished. Until then, the handler ends here and is retried.
local function await_job(ctx, purpose, reason)
    local wanted = job_of(ctx, purpose)
    local job = kube.get(wanted) or kube.create(wanted)
    local name = `{HOME}/{job.metadata.name}`
    local state, message = outcome(job)
    if state == "Failed" then
        kube.delete(job, { propagation = "Background" }) -- the next attempt creates a new one
        ctx.conditions:set("Ready", false, "JobFailed", `the Job {name} has failed: {message}`)
        kopf.retry(`the Job {name} has failed`, 60)
    elseif not state then
        ctx.conditions:set("Ready", false, reason, `waiting for the Job {name}`)
        kopf.retry(`waiting for the Job {name}`, 5)
    end
end

function claim(ctx)
    local login = login_of(ctx)
    await_job(ctx, "create", "Creating")
    local secret = ctx.name .. "-database"
    kube.apply(kopf.adopt({
        apiVersion = "v1",
        kind = "Secret",
        metadata = { name = secret },
        data = login.data,
    }), { field_manager = "database-claim", force = true })
    ctx.patch.status.database = database_of(ctx)
    ctx.patch.status.secret = secret
    ctx.conditions:set("Ready", true, "Provisioned", "all is as it should be")
end

function release(ctx)
    if ctx.spec.deletionPolicy == "Delete" then
        local login = login_of(ctx)
        await_job(ctx, "drop", "Dropping")
        kube.delete(login)
    end -- otherwise the database is kept, and its login is kept in HOME
    for purpose in SQL do
        kube.delete(job_of(ctx, purpose), { propagation = "Background" })
    end
end

kopf.on_create("databaseclaims", claim)
kopf.on_delete("databaseclaims", release)
