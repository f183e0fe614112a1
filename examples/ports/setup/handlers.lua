-- Runs a command in each pod that asks for it, once it is ready.
local SETUP = "ports.example.com/setup"
local DONE = "ports.example.com/setup-output"

kopf.on_create("pods", { annotations = { [SETUP] = kopf.PRESENT }, backoff = "10s" }, function(ctx)
    kube.wait(ctx.body, "condition=Ready", "5m")
    local result = kube.exec(ctx.name, { "sh", "-c", ctx.annotations[SETUP] }, { timeout = "1m" })
    if result.code ~= 0 then
        kopf.retry("the setup has failed with code " .. result.code .. ": " .. result.stderr, "10s")
    end
    ctx.patch.metadata.annotations[DONE] = strings.trim(result.stdout)
end)
