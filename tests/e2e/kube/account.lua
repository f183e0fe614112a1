-- What an operator may do with the rights of its service account: it asks for all of it until nothing is refused any more.

local note = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "note" }, data = { text = "hello" } }

local asks = {
    { "reading a secret", function() kube.get("secrets", { name = "any" }) end },
    { "listing pods", function() kube.list("pods") end },
    { "listing all pods", function() kube.list("pods", { namespace = "*" }) end },
    { "applying a note", function() kube.apply(note) end },
    { "changing a note", function() kube.patch(note, { data = { text = "bye" } }) end },
    { "reading a note", function() kube.get("configmaps", { name = "note" }) end },
    { "watching services", function() for event in kube.watch("services", { timeout = 1 }) do print(event.type) end end },
    { "deleting a note", function() kube.delete(note) end },
}

function account_fn(ctx)
    local refused = 0
    for _, ask in asks do
        local ok, e = pcall(ask[2])
        if ok then
            ctx.logger:info("granted is " .. ask[1])
        else
            refused += 1
            ctx.logger:info("refused is " .. ask[1] .. ": " .. e.status .. " " .. e.reason .. ": " .. e)
        end
    end
    if refused > 0 then
        kopf.retry("refused are " .. refused, 1)
    end
    return "all is granted"
end
kopf.on_create("kopfexamples", account_fn)
