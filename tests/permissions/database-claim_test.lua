-- A claim is provided and released; a Job fails, and is made again.

local HOME = "databases"

local function claim(name, policy)
    return kube.create({
        apiVersion = "databases.example.com/v1",
        kind = "DatabaseClaim",
        metadata = { name = name },
        spec = { deletionPolicy = policy },
    })
end

kopf.test("databases are provided and dropped", { timeout = "2h" }, function()
    kube.create({ apiVersion = "v1", kind = "Namespace", metadata = { name = HOME } })
    local dropped, kept = claim("dropped", "Delete"), claim("kept", "Retain")
    kopf.sleep("5m")
    for _, it in { dropped, kept } do
        check.equal(kube.get(it).status.conditions[1].status, "True")
        kube.delete(it)
    end
    kopf.sleep("5m")
    check.equal(#kube.list("databaseclaims.databases.example.com"), 0)
end)

