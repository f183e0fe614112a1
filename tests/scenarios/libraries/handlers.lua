-- The libraries are there without being loaded, also at the top level.
log.info("loaded", { at = time.stamp() })

function use(ctx)
    log.info("about the object")
    local before = time.now()
    -- A callback may wait: other handlers go on meanwhile.
    local shouted = lists.map(ctx.spec.items, function(item)
        kopf.sleep(1)
        return strings.upper(item)
    end)
    return {
        waited = time.now() - before,
        shouted = lists.sort(shouted),
        doubled = quantity.multiply(ctx.spec.size, 2),
        age = time.since(ctx.meta.creationTimestamp),
        digest = strings.truncate(hash.sha256(json.encode(ctx.spec)), 8, ""),
        text = template.render("{{ metadata.name }}: {{ spec.items | join(\",\") }}", ctx.body),
        image = deep.get(ctx.body, "spec.image", "none"),
    }
end

function wrong(ctx)
    quantity.parse("much")
end

kopf.on_create("kopfexamples", use)
kopf.on_create("kopfexamples", { errors = "permanent" }, wrong)
