-- Commands and files in containers, and programs as Jobs.

local function refused(ctx, what, f, ...)
    local ok, problem = pcall(f, ...)
    ctx.logger:info(what .. ": " .. tostring(ok) .. " " .. tostring(problem))
end

local function commands(ctx)
    local log = ctx.logger
    local said = kube.exec("p", { "say", "hello", "a b" })
    log:info("said: " .. json.encode(said))
    local failed = kube.exec({ apiVersion = "v1", kind = "Pod", metadata = { name = "p" } }, { "fail", "3" }, { container = "c" })
    log:info("failed: " .. json.encode(failed))
    local large = string.rep("0123456789", 10000)
    log:info("stdin: " .. tostring(kube.exec("p", { "cat" }, { stdin = large }).stdout == large))
    kube.copy_to("p", "/etc/app/key", "a\0\255b", { mode = 256 })
    log:info("copied: " .. base64.encode(kube.copy_from("p", "/etc/app/key")))

    refused(ctx, "no pod", kube.exec, "nope", { "say" })
    refused(ctx, "no container", kube.exec, "p", { "say" }, { container = "zzz" })
    refused(ctx, "no program", kube.exec, "p", { "nonsense" })
    refused(ctx, "too late", kube.exec, "p", { "hang" }, { timeout = "2s" })
    refused(ctx, "too much", kube.exec, "p", { "flood" })
    refused(ctx, "no list", kube.exec, "p", {})
    refused(ctx, "no strings", kube.exec, "p", { "say", 5 })
    refused(ctx, "relative", kube.copy_to, "p", "key", "x")
    refused(ctx, "upwards", kube.copy_from, "p", "/etc/../etc/shadow")
    refused(ctx, "a directory", kube.copy_to, "p", "/etc/app/", "x")
    refused(ctx, "another file", kube.copy_from, "p", "/etc/app/other")
end

local function scan(ctx)
    local result = kube.run("scanner:1", { "scan", "--all" }, { name = "scan", env = { LEVEL = "high" }, files = { ["/etc/scan.yaml"] = "a: 1" }, timeout = "1m", keep = true })
    ctx.logger:info("ran: " .. json.encode(result))
    refused(ctx, "another", kube.run, "scanner:2", { "scan" }, { name = "scan" })
    refused(ctx, "no command", kube.run, "scanner:2", {})
    refused(ctx, "a wrong variable", kube.run, "scanner:2", { "scan" }, { env = { A = true } })
    refused(ctx, "a wrong file", kube.run, "scanner:2", { "scan" }, { files = { ["../x"] = "TOP SECRET" } })
    local job = kube.get("jobs.batch", { name = "scan" })
    ctx.logger:info("owned by " .. job.metadata.ownerReferences[1].name .. ", token: " .. tostring(job.spec.template.spec.automountServiceAccountToken))
    -- Without `keep`, nothing is left.
    kube.run("scanner:1", { "scan", "--all" }, { name = "scan", env = { LEVEL = "high" }, files = { ["/etc/scan.yaml"] = "a: 1" } })
    ctx.logger:info("left: " .. tostring(kube.get("jobs.batch", { name = "scan" }) ~= nil) .. " " .. tostring(kube.secret("scan") ~= nil))
end

kopf.on_create("kopfexamples", { id = "create_fn" }, function(ctx)
    if ctx.name == "one" then commands(ctx) else scan(ctx) end
end)
