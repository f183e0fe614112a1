local ca = crypto.ca({ name = "cluster CA" })

local function data_of(names)
    local made = crypto.certificate({ ca = ca, names = names })
    return { ["tls.crt"] = made.cert, ["tls.key"] = made.key, ["ca.crt"] = made.ca }
end

local function secret(name, data)
    return kube.create({
        apiVersion = "v1",
        kind = "Secret",
        metadata = { name = name, labels = { keystore = "yes" } },
        stringData = data,
    })
end

kopf.test("a Secret gets keystores, and new ones with its next certificate", function()
    local made = secret("kafka", data_of({ "kafka.svc" }))
    kopf.sleep("5s")
    local before = kube.secret("kafka-keystore")
    check.equal(#before.password, 32)
    check.equal(#before["keystore.p12"] > 1000, true)
    check.equal(#before["truststore.p12"] > 500, true)
    kube.patch(made, { stringData = data_of({ "kafka.svc", "kafka" }) })
    kopf.sleep("5s")
    local after = kube.secret("kafka-keystore")
    check.equal(after.password, before.password)
    check.equal(after["keystore.p12"] ~= before["keystore.p12"], true)
    check.equal(after.certificate ~= before.certificate, true)
end)

kopf.test("a Secret without a certificate gets none", function()
    secret("other", { user = "x" })
    kopf.sleep("5s")
    check.equal(kube.secret("other-keystore"), nil)
end)
