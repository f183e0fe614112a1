-- A lease is changed in every way, and deleted; others expire, are kept, or cannot shrink.

local function lease(name, spec)
    return kube.create({
        apiVersion = "example.com/v1",
        kind = "VolumeLease",
        metadata = { name = name, labels = { team = "red" } },
        spec = spec,
    })
end

kopf.test("leases are changed and end", { timeout = "2h" }, function()
    local own = lease("own", { size = "1Gi" })
    local kept = lease("kept", { size = "1Gi", keep = true })
    lease("short", { size = "1Gi", ttl = 30 })
    kopf.sleep("1m")
    kube.patch(own, { spec = { size = "2Gi", snapshots = { "a", "b" }, backup = { image = "copy" } } })
    kube.patch(own, { metadata = { labels = { team = "blue" } } })
    kopf.sleep("1m")
    kube.patch(own, { spec = { backup = kopf.null } })
    kopf.sleep("1m")
    kube.patch(own, { spec = { size = "1Gi" } })
    kopf.sleep("1m")
    check.that(kube.get(own).status.problem)
    kube.delete(own)
    kube.delete(kept)
    kopf.sleep("2m")
    check.equal(#kube.list("volumeleases.example.com"), 0)
    check.that(kube.get("persistentvolumeclaims", { name = "lease-kept" }))
end)
