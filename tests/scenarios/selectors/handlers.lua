-- Every way to name a resource.

local function tell(id)
    return function(ctx)
        ctx.logger:info("found by " .. id .. ": " .. ctx.resource.plural)
    end
end

kopf.on_event("kopfexamples", { id = "plural" }, tell("plural"))
kopf.on_event("kopfexample", { id = "singular" }, tell("singular"))
kopf.on_event("KopfExample", { id = "kind" }, tell("kind"))
kopf.on_event("kex", { id = "short" }, tell("short"))
kopf.on_event("kopfexamples.kopf.dev", { id = "group" }, tell("group"))
kopf.on_event("kopfexamples.v1.kopf.dev", { id = "version" }, tell("version"))
kopf.on_event("kopf.dev", "kopfexamples", { id = "two" }, tell("two"))
kopf.on_event("kopf.dev/v1", "kopfexamples", { id = "group-version" }, tell("group-version"))
kopf.on_event("kopf.dev", "v1", "kopfexamples", { id = "three" }, tell("three"))
kopf.on_event("kopf.dev", "v2", "kopfexamples", { id = "other-version" }, tell("other-version"))
kopf.on_event("example.com", "kopfexamples", { id = "other-group" }, tell("other-group"))
kopf.on_event({ id = "keywords", group = "kopf.dev", version = "v1", plural = "kopfexamples" }, tell("keywords"))
kopf.on_event({ id = "kind-keyword", kind = "KopfExample" }, tell("kind-keyword"))
kopf.on_event({ id = "short-keyword", shortcut = "kex" }, tell("short-keyword"))
kopf.on_event({ id = "category", category = "all", group = "kopf.dev" }, tell("category"))
kopf.on_event("kopf.dev", kopf.EVERYTHING, { id = "everything" }, tell("everything"))
