local function appliance(name)
    return kube.create({ apiVersion = "ports.example.com/v1", kind = "Appliance", metadata = { name = name }, spec = { size = 2 } })
end

local function is_ready(it)
    return it and it.status and it.status.phase == "Ready"
end

kopf.test("an appliance gets a key pair and is installed with it", function()
    local made = appliance("web")
    kube.wait(made, "created")
    local job = kopf.null
    for event in kube.watch("jobs.batch", { timeout = "30s" }) do
        job = event.object
        break
    end
    local container = job.spec.template.spec.containers[1]
    check.equal(container.env[1], { name = "SIZE", value = "2" })
    check.equal(container.volumeMounts[1].mountPath, "/keys/id_ed25519")
    check.equal(job.metadata.ownerReferences[1].name, "web")
    local ready = kube.wait(made, is_ready, "1m")
    local key = kube.secret("web-ssh")
    check.equal(ready.status.publicKey, key.public)
    check.equal(strings.starts_with(key.public, "ssh-ed25519 "), true)
    check.equal(strings.starts_with(key.private, "-----BEGIN OPENSSH PRIVATE KEY-----"), true)
    kopf.sleep("5s")
    check.equal(#kube.list("jobs.batch"), 0)
end)

kopf.test("an installation that fails is repeated", function()
    fake.run(function(job)
        check.equal(job.command, { "ansible-playbook", "install.yaml" })
        check.that(strings.starts_with(job.files["/keys/id_ed25519"], "-----BEGIN OPENSSH PRIVATE KEY-----"))
        return { log = "no route to host", code = if #fake.calls("run") < 3 then 4 else 0 }
    end)
    local made = appliance("late")
    kopf.sleep("1m")
    check.equal(kube.get(made).status.phase, "Failed")
    kube.wait(made, is_ready, "5m")
    check.equal(#fake.calls("run"), 3)
end)

kopf.test("the key pair stays when an appliance changes", function()
    local made = appliance("db")
    kube.wait(made, is_ready, "1m")
    local before = kube.secret("db-ssh").private
    kube.patch(made, { spec = { size = 3 } })
    kopf.sleep("1m")
    check.equal(kube.secret("db-ssh").private, before)
end)
