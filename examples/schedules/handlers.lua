-- Work of the operator: a sweep, a report at night, and copies at the times that objects ask for.

kopf.every("15m", { id = "sweep" }, function(ctx)
    for _, pod in kube.list("pods", { field_selector = "status.phase=Failed" }) do
        kube.delete(pod)
    end
end)

kopf.cron("0 3 * * *", { id = "report", timezone = "Europe/Berlin", missed = "once" }, function(ctx)
    kube.apply({
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = "report" },
        data = { planned = ctx.scheduled, pods = tostring(#kube.list("pods")) },
    })
end)

-- While one copy waits for the API server, others run: the lock gives each of them a number of its own.
local function next_number()
    return kopf.lock("numbers", function()
        local numbers = kube.create({
            apiVersion = "v1",
            kind = "ConfigMap",
            metadata = { name = "numbers" },
            data = { next = "1" },
        }, { exists_ok = true })
        local number = numbers.data.next
        kube.patch(numbers, { data = { next = tostring(tonumber(number) + 1) } })
        return number
    end)
end

kopf.timer("configmaps", {
    id = "copy",
    labels = { copies = kopf.PRESENT },
    schedule = function(ctx) return kopf.get(ctx.body, "data.schedule") end,
    finalizer = false,
}, function(ctx)
    kube.create({
        apiVersion = "v1",
        kind = "ConfigMap",
        metadata = { name = ctx.name .. "-" .. next_number() },
        data = kopf.copy(ctx.body.data),
    })
end)
