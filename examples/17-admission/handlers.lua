-- Admission handlers see a request before its object is stored.

kopf.on_startup(function(ctx)
    -- The name of the webhook configurations; `kopf run` also needs --webhook-url or --webhook-service.
    ctx.settings.admission.managed = "auto.kopf.dev"
end)

function authhook(ctx)
    ctx.warn("Accessing as user-agent: " .. (ctx.headers["user-agent"] or "unknown"))
    if ctx.sslpeer.subject == nil then
        ctx.warn("SSL peer is not identified.")
    end
end
kopf.on_validate("kex", authhook)

function validate1(ctx)
    if ctx.spec.field == "wrong" and not ctx.dryrun then
        error(kopf.AdmissionError("Meh! I don't like it. Change the field."))
    end
end
kopf.on_validate("kex", validate1)

function validate2(ctx)
    error(kopf.AdmissionError("I'm too lazy anyway. Go away!", 555))
end
kopf.on_validate("kex", { field = "spec.field", value = "not-allowed" }, validate2)

function mutate1(ctx)
    ctx.patch.spec.injected = 123
end
kopf.on_mutate("kex", { labels = { somelabel = "somevalue" } }, mutate1)

function validate_subresources(ctx)
    if ctx.subresource == "status" and kopf.get(ctx.status, "field") ~= ctx.spec.field then
        error(kopf.AdmissionError("status.field MUST be equal to spec.field!"))
    end
end
kopf.on_validate("kex", { subresource = "*" }, validate_subresources)
