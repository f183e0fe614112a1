-- Leases of volumes: a claim for each lease, as long as the lease exists.

local PLURAL = "volumeleases"
local DEFAULT_SIZE = "1Gi"
local UNITS = { Mi = 1, Gi = 1024, Ti = 1024 * 1024 }
local BACKUP = [[
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ name }}-backup
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: copy
          image: {{ image }}
          args: {{ args | json }}
          volumeMounts:
            - { name: data, mountPath: /data, readOnly: true }
      volumes:
        - name: data
          persistentVolumeClaim: { claimName: {{ claim }} }
]]

local function mebibytes(size)
    local number, unit = string.match(tostring(size), "^(%d+)([MGT]i)$")
    if not number then
        kopf.fail(`spec.size is no size: {size}`)
    end
    return (tonumber(number) or 0) * UNITS[unit]
end

local function is_expiring(ctx)
    return ctx.spec.ttl ~= nil
end

local function patch_claim(ctx, patch)
    local claim = { name = ctx.memo.prefix .. ctx.name }
    return kube.patch({ apiVersion = "v1", kind = "PersistentVolumeClaim", metadata = claim }, patch)
end

-- The operator itself.

function configure(ctx)
    ctx.settings.posting.level = "WARNING"
    ctx.settings.execution.default_backoff = 2
    ctx.memo.prefix = "lease-"
end

function login(ctx)
    return kopf.login_with_service_account(ctx) or kopf.login_with_kubeconfig(ctx)
end

function finish(ctx)
    ctx.logger:info("No lease is served any more.")
end

function tell_the_time(_ctx)
    return time.now()
end

kopf.on_startup(configure)
kopf.on_login({ retries = 3 }, login)
kopf.on_cleanup(finish)
kopf.on_probe({ id = "now" }, tell_the_time)

-- Indexes and events.

function claims(ctx)
    return { [ctx.namespace .. "/" .. ctx.labels["example.com/lease"]] = ctx.name }
end

function note_phase(ctx)
    if ctx.type ~= "DELETED" then
        ctx.logger:info(`The claim {ctx.name} is {ctx.status.phase or "new"}.`)
    end
end

kopf.index("persistentvolumeclaims", { labels = { ["example.com/lease"] = kopf.PRESENT } }, claims)
kopf.on_event("persistentvolumeclaims", { labels = { ["example.com/lease"] = kopf.PRESENT } }, note_phase)

-- Changes of leases.

function provide(ctx)
    local size = ctx.spec.size or DEFAULT_SIZE
    mebibytes(size)
    local claim = {
        apiVersion = "v1",
        kind = "PersistentVolumeClaim",
        metadata = { name = ctx.memo.prefix .. ctx.name, labels = { ["example.com/lease"] = ctx.name } },
        spec = {
            accessModes = { "ReadWriteOnce" },
            resources = { requests = { storage = size } },
        },
    }
    if ctx.spec.class then
        claim.spec.storageClassName = ctx.spec.class
    end
    kopf.adopt(claim)
    ---@type boolean, any
    local ok, made = pcall(kube.create, claim)
    if not ok then
        if made.status ~= 409 then
            error(made)
        end
        ctx.logger:info("The claim was there already.")
        return { claim = ctx.memo.prefix .. ctx.name }
    end
    ctx.logger:info(`The claim {made.metadata.name} is made.`)
    kopf.event(ctx.body, { type = "Normal", reason = "Provided", message = `It has {made.metadata.name}.` })
    return { claim = made.metadata.name }
end

function resize(ctx)
    if ctx.old == nil or ctx.new == nil then
        return
    end
    if mebibytes(ctx.new) < mebibytes(ctx.old) then
        ctx.patch.status.problem = `cannot shrink from {ctx.old} to {ctx.new}`
        kopf.warn(ctx.body, "Shrinking", "A volume does not shrink.")
        kopf.fail("volumes do not shrink")
    end
    ---@type boolean, any
    local ok, problem = pcall(patch_claim, ctx, {
        metadata = { annotations = { ["example.com/size"] = ctx.new } },
    })
    if not ok then
        if problem.status == 404 then
            kopf.retry("the claim is not there yet", 2)
        end
        error(problem)
    end
    ctx.patch.status.problem = kopf.null
    ctx.patch.status.size = ctx.new
end

function relabel(ctx)
    if ctx.reason == "create" then
        return
    end
    local labels = {}
    for _, change in ctx.diff do
        if #change.field > 0 then
            labels[change.field[1]] = change.new == nil and kopf.null or change.new
        end
    end
    patch_claim(ctx, { metadata = { labels = labels } })
end

function take_snapshots(ctx)
    for _, snapshot in ctx.spec.snapshots or {} do
        kopf.subhandler({ id = snapshot }, function(_ctx)
            local note = {
                apiVersion = "v1",
                kind = "ConfigMap",
                metadata = { name = `{ctx.name}-{snapshot}` },
                data = { of = ctx.name, snapshot = snapshot },
            }
            kopf.adopt(note)
            kube.create(note)
        end)
    end
end

function back_up(ctx)
    if ctx.old ~= nil then
        kube.delete({
            apiVersion = "batch/v1",
            kind = "Job",
            metadata = { name = ctx.name .. "-backup" },
        }, { propagation = "Background", missing_ok = true })
        ctx.logger:info("The backup is given up.")
    end
    if ctx.new == nil then
        return nil
    end
    local job = yaml.decode(template.render(BACKUP, {
        name = ctx.name,
        image = ctx.new.image,
        args = ctx.new.args or kopf.array(),
        claim = ctx.memo.prefix .. ctx.name,
    }))
    kopf.label(job, { ["example.com/backup"] = ctx.name }, { nested = "spec.template" })
    kopf.adopt(job)
    local made = kube.create(job)
    return { job = made.metadata.name, image = ctx.new.image }
end

function summarize(ctx)
    local parts = { ctx.spec.size or DEFAULT_SIZE }
    local snapshots = #(ctx.spec.snapshots or {})
    if snapshots > 0 then
        table.insert(parts, snapshots == 1 and "1 snapshot" or `{snapshots} snapshots`)
    end
    if ctx.spec.backup then
        table.insert(parts, "backup by " .. ctx.spec.backup.image)
    end
    if ctx.spec.keep then
        table.insert(parts, "kept at the end")
    end
    ctx.patch.status.summary = table.concat(parts, ", ")
end

function keep_the_claim(ctx)
    patch_claim(ctx, {
        metadata = { ownerReferences = kopf.null, labels = { ["example.com/kept"] = "true" } },
    })
    ctx.logger:info("The claim stays.")
end

kopf.on_create(PLURAL, { retries = 5 }, provide)
kopf.on_resume(PLURAL, { retries = 5 }, provide)
kopf.on_field(PLURAL, { field = "spec.size" }, resize)
kopf.on_field(PLURAL, { field = "metadata.labels" }, relabel)
kopf.on_update(PLURAL, { field = "spec.snapshots" }, take_snapshots)
kopf.on_field(PLURAL, { field = "spec.backup" }, back_up)
kopf.on_create(PLURAL, summarize)
kopf.on_update(PLURAL, { field = "spec" }, summarize)
kopf.on_delete(PLURAL, { when = function(ctx) return ctx.spec.keep end }, keep_the_claim)

-- In the background.

function expire(ctx)
    if time.now() - time.parse(ctx.meta.creationTimestamp) > ctx.spec.ttl then
        kube.delete(ctx.body)
    end
end

function watch_over(ctx)
    while not ctx.stopped() do
        local held = kopf.copy(ctx.claims[ctx.namespace .. "/" .. ctx.name] or kopf.array())
        table.sort(held)
        if not deep.equal(held, ctx.status.claims or kopf.array()) then
            ctx.patch.status.claims = held
            kopf.retry("the claims have changed", 1)
        end
        ctx.stopped:wait(1)
    end
end

kopf.timer(PLURAL, { interval = 1, when = is_expiring }, expire)
kopf.daemon(PLURAL, { cancellation_timeout = 5 }, watch_over)
