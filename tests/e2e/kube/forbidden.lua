-- Calls of somebody without any rights, before the operator itself asks for anything.

function startup_fn(ctx)
    for _, call in ipairs({
        function() kube.get("secrets", { name = "any", namespace = "default" }) end,
        function() kube.list("pods", { namespace = "*" }) end,
        function() kube.scale({ apiVersion = "apps/v1", kind = "Deployment", name = "x", namespace = "default" }, 1) end,
        function() for event in kube.watch("pods", { namespace = "default" }) do print(event.type) end end,
    }) do
        local ok, e = pcall(call)
        ctx.logger:info("refused " .. tostring(e.status) .. " " .. e.reason .. ": " .. e)
    end
    ctx.logger:info("may list pods: " .. tostring(kube.can_i("list", "pods", { namespace = "default" })))
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", function(ctx) end)
