-- An SSH key pair for each appliance, and a Job that installs the appliance with it.

-- The key pair is made once: who already has the public key must not lose access.
local function key_of(ctx)
    local name = ctx.name .. "-ssh"
    local found = kube.secret(name)
    if found then
        return found
    end
    local key = crypto.key("ed25519")
    local data = { private = key.ssh_private, public = key.ssh .. " " .. ctx.name }
    local secret = { apiVersion = "v1", kind = "Secret", metadata = { name = name }, stringData = data }
    kopf.adopt(secret, ctx.body)
    kube.create(secret)
    return data
end

local function install(ctx)
    local key = key_of(ctx)
    ctx.patch.status.publicKey = key.public
    local result = kube.run(ctx.spec.image, { "ansible-playbook", "install.yaml" }, {
        env = { SIZE = ctx.spec.size },
        files = { ["/keys/id_ed25519"] = key.private },
        timeout = "30m",
    })
    if result.code ~= 0 then
        ctx.patch.status.phase = "Failed"
        kopf.retry("the installation has failed with code " .. tostring(result.code), "1m")
    end
    ctx.patch.status.phase = "Ready"
end

kopf.on_create("appliances", install)
kopf.on_update("appliances", { field = "spec" }, install)
