-- Keystores in PKCS#12, from the certificates in Secrets.

local function convert(ctx)
    local source = kube.secret(ctx.name)
    if not (source["tls.crt"] and source["tls.key"] and source["ca.crt"]) then
        kopf.fail("the Secret has no tls.crt, tls.key and ca.crt")
    end
    local name = ctx.name .. "-keystore"
    local present = kube.secret(name)
    local made_of = crypto.parse(source["tls.crt"]).fingerprint
    if present and present.certificate == made_of then
        return
    end
    local password = present and present.password or random.string(32)
    local store = crypto.pkcs12(source["tls.crt"], password, { key = source["tls.key"], ca = source["ca.crt"], name = "server" })
    local trusted = crypto.pkcs12(source["ca.crt"], password, { name = "ca" })
    local secret = {
        apiVersion = "v1",
        kind = "Secret",
        metadata = { name = name },
        data = {
            ["keystore.p12"] = base64.encode(store),
            ["truststore.p12"] = base64.encode(trusted),
            password = base64.encode(password),
            certificate = base64.encode(made_of),
        },
    }
    kopf.append_owner_reference(secret, ctx.body)
    kube.apply(secret, { force = true })
end

kopf.on_create("secrets", { labels = { keystore = "yes" } }, convert)
kopf.on_update("secrets", { labels = { keystore = "yes" } }, convert)
kopf.on_resume("secrets", { labels = { keystore = "yes" } }, convert)
