-- Commands and Jobs on a real server, which has no kubelet.

local function told(ctx, what, f, ...)
    local problem = select(2, pcall(f, ...))
    ctx.logger:info("TOLD " .. what .. ": " .. tostring(problem))
end

kopf.on_create("kopfexamples", { id = "commands" }, function(ctx)
    kube.create({
        apiVersion = "v1",
        kind = "Pod",
        metadata = { name = "p" },
        spec = { containers = { { name = "c", image = "i" } } },
    }, { exists_ok = true })
    told(ctx, "exec", kube.exec, "p", { "sh", "-c", "echo ä & echo" })
    told(ctx, "input", kube.exec, "p", { "cat" }, { stdin = "x", container = "c" })
    told(ctx, "copy_to", kube.copy_to, "p", "/tmp/x", "y")
    told(ctx, "copy_from", kube.copy_from, "p", "/tmp/x")
    told(ctx, "absent", kube.exec, "q", { "ls" })
    local result = kube.run("scanner:1", { "scan" }, { name = "scan", files = { ["/etc/a"] = "b" }, env = { LEVEL = 5 } })
    ctx.logger:info("RAN " .. tostring(result.code) .. " " .. tostring(result.problem))
    local left = kube.get("jobs.batch", { name = "scan" })
    ctx.logger:info("LEFT " .. tostring(left == nil or left.metadata.deletionTimestamp ~= nil) .. " " .. tostring(kube.secret("scan") == nil))
end)
