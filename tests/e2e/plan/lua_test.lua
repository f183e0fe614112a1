-- In a test, as in a cluster, it is no plan.

kopf.test("the flag is false", function(ctx)
    kube.create({
        apiVersion = "kopf.dev/v1",
        kind = "KopfExample",
        metadata = { name = "one", namespace = "default" },
        spec = { children = { "a" }, value = "1" },
    })
    kopf.sleep(5)
    local map = kube.get("configmaps", { name = "one-a", namespace = "default" })
    check.equal(map.data.dry, "false")
    check.equal(ctx.dry, false)
end)
