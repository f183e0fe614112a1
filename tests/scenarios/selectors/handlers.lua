-- Every way to name a resource.

local function selects(id, ...)
    local arguments = table.pack(...)
    table.insert(arguments, function(ctx)
        ctx.logger:info(id .. " " .. ctx.resource.plural)
    end)
    local options = { id = id }
    for i, argument in ipairs(arguments) do
        if type(argument) == "table" then
            argument.id = id
            options = nil
        end
    end
    if options then
        table.insert(arguments, #arguments, options)
    end
    kopf.on_event(table.unpack(arguments))
end

selects("plural", "kopfexamples")
selects("singular", "kopfexample")
selects("kind", "KopfExample")
selects("short", "kex")
selects("with-group", "kopfexamples.kopf.dev")
selects("with-version", "kopf.dev/v1", "kopfexamples")
selects("three", "kopf.dev", "v1", "kopfexamples")
selects("other-group", "other.dev", "kopfexamples")
selects("keywords", { group = "kopf.dev", version = "v1", plural = "kopfexamples" })
selects("keyword-kind", { kind = "KopfExample" })
selects("keyword-shortcut", { shortcut = "kex" })
selects("keyword-category", { category = "all", group = "kopf.dev" })
selects("everything", "kopf.dev", kopf.EVERYTHING)
selects("function", function(resource)
    return resource.group == "kopf.dev" and resource.plural == "kopfexamples"
end)
